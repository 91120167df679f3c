// JSON of strangers: refused before anything is made of it when it is nested beyond reason, holds more values than any
// honest body, or a `__proto__` key. One pass over the text, because building first and looking afterwards costs seconds.

const deepest = 64
const maxValues = 500_000
const maxKeyLength = '__proto__'.length * 6

/** @throws SyntaxError that says what is wrong */
export function parseJson(text: string): unknown {
  checkText(text)
  return JSON.parse(text)
}

function checkText(text: string): void {
  let depth = 0
  let values = 0
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
          throw new SyntaxError('the key "__proto__" is refused')
        }
        break
      }
      case 0x2c:
        if (++values > maxValues) throw new SyntaxError(`JSON of more than ${maxValues} values is refused`)
        break
      case 0x5b:
      case 0x7b:
        if (++depth > deepest) throw new SyntaxError(`JSON nested deeper than ${deepest} is refused`)
        break
      case 0x5d:
      case 0x7d:
        depth--
    }
  }
}

/** Where the string ends that begins at `at`; the text's length when it never does. */
function endOfString(text: string, at: number): number {
  for (at++; at < text.length && text.charCodeAt(at) !== 0x22; at++) if (text.charCodeAt(at) === 0x5c) at++
  return at
}

const colon = /\s*:/y

function isKey(text: string, after: number): boolean {
  colon.lastIndex = after
  return colon.test(text)
}

/** However it is escaped. */
function isProto(quoted: string): boolean {
  try {
    return JSON.parse(quoted) === '__proto__'
  } catch {
    return false
  }
}
