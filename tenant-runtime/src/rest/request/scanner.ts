// Reads one parameter's text from left to right; what does not fit is an error that says where. Pure.
import { restError } from '../rest-error.ts'

/** Characters that end a name which is not in quotes. */
const reserved = /[,.:()!"]/

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

  /** What comes next is this. */
  sees(expected: string): boolean {
    return this.text.startsWith(expected, this.at)
  }

  /** Passes over it, if it comes next. */
  skip(expected: string): boolean {
    if (!this.sees(expected)) return false
    this.at += expected.length
    return true
  }

  /** @throws RuntimeError INVALID_QUERY when something else comes */
  expect(expected: string): void {
    if (!this.skip(expected)) this.fail(`"${expected}" is expected`)
  }

  /** Passes over what the pattern, which must be sticky, finds here. */
  match(pattern: RegExp): string | undefined {
    pattern.lastIndex = this.at
    const found = pattern.exec(this.text)?.[0]
    if (found !== undefined) this.at += found.length
    return found
  }

  /** A name, in quotes or up to the next character that means something. */
  name(): string {
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

  /** All that is left. */
  rest(): string {
    const rest = this.text.slice(this.at)
    this.at = this.text.length
    return rest
  }

  fail(error: string): never {
    throw badQuery(this.#parameter, `${error} at character ${this.at + 1} of "${this.text}"`)
  }
}

export function badQuery(parameter: string, error: string) {
  return restError('INVALID_QUERY', { code: 'PGRST100', message: `query parameter "${parameter}": ${error}` })
}
