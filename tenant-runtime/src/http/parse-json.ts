// Parses JSON from clients. Rejects it before parsing when it is nested too deeply, has more values than any legitimate
// body, or has a `__proto__` key. One pass over the text, because checking the parsed value would take seconds.

const maxDepth = 64
const maxValues = 500_000
/** The memory of a value and its key, and of an object or array, measured in V8 with the most expensive forms. */
const bytesPerValue = 80
const bytesPerContainer = 160
const maxKeyLength = '__proto__'.length * 6

/**
 * Parses the text.
 * @param charge called with the memory that the value needs in addition to its texts, before it is made
 * @throws SyntaxError that states what is wrong
 */
export function parseJson(text: string, charge: (bytes: number) => void = () => undefined): unknown {
  charge(checkText(text))
  return JSON.parse(text)
}

/** Checks the text, and returns the memory that its value needs in addition to its texts. */
function checkText(text: string): number {
  let depth = 0
  let values = 0
  let containers = 0
  for (let at = 0; at < text.length; at++) {
    switch (text.charCodeAt(at)) {
      case 0x22: {
        const begin = at
        at = endOfString(text, at)
        const length = at - begin - 1
        if (
          length >= '__proto__'.length &&
          length <= maxKeyLength &&
          isKey(text, at + 1) &&
          isProto(text.slice(begin, at + 1))
        ) {
          throw new SyntaxError('The key "__proto__" is not allowed.')
        }
        break
      }
      case 0x2c:
        if (++values > maxValues) throw new SyntaxError(`The JSON has more than ${maxValues} values.`)
        break
      case 0x5b:
      case 0x7b:
        if (++containers > maxValues) throw new SyntaxError(`The JSON has more than ${maxValues} objects and arrays.`)
        if (++depth > maxDepth) throw new SyntaxError(`The JSON is nested deeper than ${maxDepth} levels.`)
        break
      case 0x5d:
      case 0x7d:
        depth--
    }
  }
  return values * bytesPerValue + containers * bytesPerContainer
}

/** Returns the end of the string that begins at `at`, or the text's length when it is not terminated. */
function endOfString(text: string, at: number): number {
  for (at++; at < text.length && text.charCodeAt(at) !== 0x22; at++) if (text.charCodeAt(at) === 0x5c) at++
  return at
}

const colon = /\s*:/y

function isKey(text: string, after: number): boolean {
  colon.lastIndex = after
  return colon.test(text)
}

/** Whether the key is `__proto__`, however it is escaped. */
function isProto(quoted: string): boolean {
  try {
    return JSON.parse(quoted) === '__proto__'
  } catch {
    return false
  }
}
