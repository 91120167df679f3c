// Opaque cursors of lists ordered by (created_at, id).
import { ControlError } from './errors.ts'

/** Position of a row in a list that is ordered by creation time and ID. */
export interface Position {
  createdAt: Date
  id: string
}

function encodeCursor({ createdAt, id }: Position): string {
  return Buffer.from(JSON.stringify([createdAt.toISOString(), id])).toString('base64url')
}

/**
 * Decodes a cursor.
 * @param ids form of the list's IDs. A cursor of another list is rejected, because Postgres would fail on it.
 * @throws ControlError INVALID_PARAMETER
 */
export function decodeCursor(cursor: string, ids: RegExp): Position {
  try {
    const value: unknown = JSON.parse(Buffer.from(cursor, 'base64url').toString('utf8'))
    if (
      Array.isArray(value) &&
      value.length === 2 &&
      typeof value[0] === 'string' &&
      typeof value[1] === 'string' &&
      ids.test(value[1])
    ) {
      const createdAt = new Date(value[0])
      if (!Number.isNaN(createdAt.getTime())) return { createdAt, id: value[1] }
    }
  } catch {
    // All invalid cursors have the same message.
  }
  throw new ControlError('INVALID_PARAMETER', 'Invalid cursor. It must be the "next_cursor" of an earlier page.')
}

/** Returns the condition for rows after a position, in the order of the list. */
export function afterPosition({ createdAt, id }: Position) {
  return { OR: [{ createdAt: { gt: createdAt } }, { createdAt, id: { gt: id } }] }
}

/** Returns the condition for rows after a position, in the reverse order of the list. */
export function beforePosition({ createdAt, id }: Position) {
  return { OR: [{ createdAt: { lt: createdAt } }, { createdAt, id: { lt: id } }] }
}

/** Creates a page from `limit + 1` rows, of which the last one only shows that there is a next page. */
export function toPage<Row extends Position, Item>(rows: Row[], limit: number, item: (row: Row) => Item) {
  const shown = rows.slice(0, limit)
  const last = shown.at(-1)
  return {
    items: shown.map(item),
    nextCursor: rows.length > limit && last !== undefined ? encodeCursor(last) : undefined,
  }
}
