// Opaque cursors of lists ordered by (created_at, id).
import { ControlError } from './errors.ts'

/** The place of a row in a list that is ordered by time of creation and id. */
export interface Position {
  createdAt: Date
  id: string
}

function encodeCursor({ createdAt, id }: Position): string {
  return Buffer.from(JSON.stringify([createdAt.toISOString(), id])).toString('base64url')
}

/**
 * `ids` is the form of the list's ids: a cursor of another list is refused, as Postgres would fail on it.
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
    // Falls through to the one message for every kind of damage.
  }
  throw new ControlError('INVALID_PARAMETER', 'cursor is not one that a list has given')
}

/** The rows after a position, in the lists' order. */
export function afterPosition({ createdAt, id }: Position) {
  return { OR: [{ createdAt: { gt: createdAt } }, { createdAt, id: { gt: id } }] }
}

/** Cuts the row too many that was asked for, and tells where to go on. */
export function toPage<Row extends Position, Item>(rows: Row[], limit: number, item: (row: Row) => Item) {
  const shown = rows.slice(0, limit)
  const last = shown.at(-1)
  return {
    items: shown.map(item),
    nextCursor: rows.length > limit && last !== undefined ? encodeCursor(last) : undefined,
  }
}
