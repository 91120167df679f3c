// The file of the internal token. It is read again whenever it changes, so that the token is replaced without a restart.
import { readFileSync, watchFile } from 'node:fs'
import { ConfigurationError } from './configuration-error.ts'
import type { InternalToken, ReplaceableToken } from './internal-token.ts'

/** Milliseconds between two checks of the file. */
const interval = 1_000

/** The tokens of a file, one in each line: the first is sent, and all of them are accepted. */
export class TokenFile implements ReplaceableToken {
  readonly #path: string
  readonly #minLength: number
  #tokens: readonly [string, ...string[]]

  /** Reads the file. @throws ConfigurationError for a file that cannot be read, or a token that is too short */
  constructor(path: string, minLength: number) {
    this.#path = path
    this.#minLength = minLength
    this.#tokens = readTokens(path, minLength)
  }

  get sent(): string {
    return this.#tokens[0]
  }

  get accepted(): readonly string[] {
    return this.#tokens
  }

  /** Reads the file again after each change, until the process ends. A file that cannot be used changes nothing. */
  follow(onError: (error: Error) => void): void {
    watchFile(this.#path, { interval, persistent: false }, () => {
      try {
        this.#tokens = readTokens(this.#path, this.#minLength)
      } catch (cause) {
        onError(new Error('The file of the internal token cannot be used. The former content stays valid.', { cause }))
      }
    })
  }
}

/** Follows the file of a token that has one. */
export function followToken(token: InternalToken, onError: (error: Error) => void): void {
  if (token instanceof TokenFile) token.follow(onError)
}

function readTokens(path: string, minLength: number): readonly [string, ...string[]] {
  const [sent = '', ...others] = readText(path)
    .trim()
    .split(/\s*\n\s*/)
  if ([sent, ...others].some(({ length }) => length < minLength))
    throw new ConfigurationError(
      `TENANTRY_INTERNAL_TOKEN_FILE must contain at least ${minLength} characters in each line.`,
    )
  return [sent, ...others]
}

function readText(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch (cause) {
    throw new ConfigurationError('The file in TENANTRY_INTERNAL_TOKEN_FILE cannot be read.', { cause })
  }
}
