// The internal token: what a part of the installation sends to the others, and what it accepts from them.
import { timingSafeEqual } from 'node:crypto'

/** A token that is replaced while the process runs. */
export interface ReplaceableToken {
  /** The token that this part sends. */
  readonly sent: string
  /** All tokens that this part accepts, with the one that it sends. */
  readonly accepted: readonly string[]
}

/** The installation's internal token. A text stays the same as long as the process runs. */
export type InternalToken = string | ReplaceableToken

/** Returns the token that this part sends now. */
export function sentToken(token: InternalToken): string {
  return typeof token === 'string' ? token : token.sent
}

/** Returns the tokens that this part accepts now. */
export function acceptedTokens(token: InternalToken): readonly string[] {
  return typeof token === 'string' ? [token] : token.accepted
}

/**
 * Checks the token of a program that reads metrics. Prometheus sends it as `Authorization: Bearer`, because it sends no other
 * headers.
 */
export function isMetricsToken(token: InternalToken, given: unknown, authorization: string | undefined): boolean {
  if (given !== undefined) return isInternalToken(token, given)
  return isInternalToken(token, /^Bearer +(\S+)$/i.exec(authorization ?? '')?.[1])
}

/** Checks a call's token in constant time. */
export function isInternalToken(token: InternalToken, given: unknown): boolean {
  if (typeof given !== 'string') return false
  const received = Buffer.from(given)
  return acceptedTokens(token).some((accepted) => {
    const expected = Buffer.from(accepted)
    return received.length === expected.length && timingSafeEqual(received, expected)
  })
}
