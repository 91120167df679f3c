// The lengths of messages, and of JSON as Postgres shows it when it is stored as `jsonb`. Pure.
import type { SentBroadcast } from '../protocol/frame.ts'

const strings = /"(?:[^"\\]|\\.)*"/g
const exponents = /[eE][+-]?(\d+)/g

/** Returns the bytes of a broadcast for the limit of the plan, also in its stored form if it is to be stored. */
export function messageLength({ content, length, storedFor }: SentBroadcast): number {
  return storedFor === undefined || content.kind === 'bytes' ? length : storedLength(content.text)
}

/**
 * Returns the maximum bytes of a text of JSON after it was stored: Postgres adds spaces, and writes the zeros of `1e300`, so that
 * a short text can become very long.
 */
function storedLength(text: string): number {
  const outside = text.replaceAll(strings, '')
  let length = Buffer.byteLength(text)
  for (const char of outside) if (char === ',' || char === ':') length++
  for (const [, digits] of outside.matchAll(exponents)) length += Number(digits)
  return length
}
