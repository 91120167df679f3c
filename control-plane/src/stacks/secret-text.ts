// A secret that is written to a file. It can be compared and hashed; logs and JSON contain only its fingerprint.
import { createHash } from 'node:crypto'
import { inspect } from 'node:util'

/** A secret text that logs and JSON do not reveal. */
export class SecretText {
  readonly #text: string
  /**
   * SHA-256 of the text, which is too random to be guessed. The property is enumerable, so that a specification's hash
   * covers it.
   */
  readonly fingerprint: string

  constructor(text: string) {
    this.#text = text
    this.fingerprint = createHash('sha256').update(text).digest('hex')
  }

  /** Returns the text. */
  reveal(): string {
    return this.#text
  }

  /** Returns what logs show instead of the text. */
  [inspect.custom](): string {
    return `SecretText(${this.fingerprint.slice(0, 8)})`
  }
}
