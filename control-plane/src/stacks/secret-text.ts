// A secret on its way to a file: it can be compared and hashed, but logged or put into JSON it shows only its fingerprint.
import { createHash } from 'node:crypto'
import { inspect } from 'node:util'

export class SecretText {
  readonly #text: string
  /** SHA-256; the texts are random enough that it gives nothing away. Enumerable, so that a spec's hash covers it. */
  readonly fingerprint: string

  constructor(text: string) {
    this.#text = text
    this.fingerprint = createHash('sha256').update(text).digest('hex')
  }

  reveal(): string {
    return this.#text
  }

  [inspect.custom](): string {
    return `SecretText(${this.fingerprint.slice(0, 8)})`
  }
}
