// The names of dumps of the control database. A name contains the time of its dump, so that dumps can be sorted and
// removed without the key that decrypts them.
import { createHash } from 'node:crypto'

const timeDigits = 12

/** Returns the name of a dump: a UUID that begins with the time in milliseconds. @param random a text that is used once */
export function newDumpId(at: Date, random: string): string {
  const time = at.getTime().toString(16).padStart(timeDigits, '0')
  const rest = createHash('sha256').update(random).digest('hex')
  const parts = [time.slice(0, 8), time.slice(8), rest.slice(0, 4), rest.slice(4, 8), rest.slice(8, 20)]
  return parts.join('-')
}

/** Returns the time in the name of a dump. */
export function dumpTime(id: string): Date {
  return new Date(Number.parseInt(id.replaceAll('-', '').slice(0, timeDigits), 16))
}
