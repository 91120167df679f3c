// Reads a parameter's text from left to right. Errors state the position. Pure.
import { restError } from '../rest-error.ts'

/** Characters that end an unquoted name, and those that end an unquoted key of JSON. */
const reserved = /[,.:()!"]/
const reservedInKey = /[,.:()>]/
const blanks = /[ \t]*/y

export class Scanner {
  readonly #parameter: string
  readonly text: string
  at = 0

  constructor(parameter: string, text: string) {
    this.#parameter = parameter
    this.text = text
  }

  get isAtEnd(): boolean {
    return this.at >= this.text.length
  }

  /** Whether the given text comes next. */
  sees(expected: string): boolean {
    return this.text.startsWith(expected, this.at)
  }

  /** Skips the given text, if it comes next. */
  skip(expected: string): boolean {
    if (!this.sees(expected)) return false
    this.at += expected.length
    return true
  }

  /**
   * Skips the given text.
   * @throws RuntimeError INVALID_QUERY when it does not come next
   */
  expect(expected: string): void {
    if (!this.skip(expected)) this.fail(`"${expected}" is expected`)
  }

  /** Skips and returns the match of a pattern, which must be sticky, at this position. */
  match(pattern: RegExp): string | undefined {
    pattern.lastIndex = this.at
    const found = pattern.exec(this.text)?.[0]
    if (found !== undefined) this.at += found.length
    return found
  }

  skipBlanks(): void {
    this.match(blanks)
  }

  /** Reads a name, in quotes or up to the next reserved character. */
  name(): string {
    return this.#word(reserved)
  }

  /** Reads a key of JSON, which may have more characters than a name. */
  key(): string {
    return this.#word(reservedInKey)
  }

  #word(reserved: RegExp): string {
    if (this.sees('"')) return this.quoted()
    const begin = this.at
    while (!this.isAtEnd && !reserved.test(this.text.charAt(this.at)) && !this.sees('->')) this.at++
    const name = this.text.slice(begin, this.at).trim()
    if (name === '') this.fail('a name is expected')
    return name
  }

  quoted(): string {
    let text = ''
    for (let at = this.at + 1; at < this.text.length; at++) {
      const character = this.text.charAt(at)
      if (character === '"') {
        this.at = at + 1
        return text
      }
      if (character === '\\') at++
      text += this.text.charAt(at)
    }
    return this.fail('a quote is not closed')
  }

  /** Returns the remaining text. */
  rest(): string {
    const rest = this.text.slice(this.at)
    this.at = this.text.length
    return rest
  }

  fail(reason: string): never {
    throw badQuery(this.#parameter, `${reason} at character ${this.at + 1} of "${this.text}"`)
  }
}

export function badQuery(parameter: string, reason: string) {
  return restError('INVALID_QUERY', { code: 'PGRST100', message: `Invalid query parameter "${parameter}": ${reason}.` })
}
