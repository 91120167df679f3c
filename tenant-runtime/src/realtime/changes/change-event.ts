// Changes of records as events store them, and as clients receive them. Pure.
import type { RlsContext } from '../../tenancy/rls-context.ts'
import type { RecordValue } from './compare-values.ts'
import type { TableFacts } from './table-facts.ts'

export const changeTypes = ['INSERT', 'UPDATE', 'DELETE'] as const
export type ChangeType = (typeof changeTypes)[number]

/** The readers of an event apart from the owner and the service, as the policy was at the time of the change. */
export type Readers = 'owner' | 'signed_in' | 'anyone'

/** The readers of a record apart from the service. */
export interface ReadersOfRecord {
  ownerId: string | null
  readers: Readers
}

/** The schemas that clients name: the tenant's own, and the one in which Supabase has its tables of files. */
export type ChangeSchema = 'public' | 'storage'

export interface ChangeEvent extends ReadersOfRecord {
  seq: bigint
  type: ChangeType
  schema: ChangeSchema
  table: string
  /** The readers of the other half of a change of readers, which is a deletion and an insertion. */
  counterpart: ReadersOfRecord | undefined
  /** The name of the bucket of a file or a bucket. */
  bucket: string | null
  /** The transaction's time in ISO 8601. */
  at: string
  /** The value of the key; an object with the values of a key of several columns. */
  id: RecordValue
  /** The record after the change, before it for a deletion; undefined when the event does not contain it. */
  record: Readonly<Record<string, RecordValue>> | undefined
}

/**
 * Returns what a change is to a caller, as the policy was at the time of the change; undefined when the caller may not read
 * it. A change of readers is an update for those who may read the record before and after it.
 */
export function typeFor(change: ChangeEvent, context: RlsContext): ChangeType | undefined {
  const { type, counterpart } = change
  if (!isReadableBy(change, context)) return undefined
  if (counterpart === undefined || !isReadableBy(counterpart, context)) return type
  return type === 'DELETE' ? undefined : 'UPDATE'
}

function isReadableBy({ ownerId, readers }: ReadersOfRecord, context: RlsContext): boolean {
  if (context.role === 'service' || readers === 'anyone') return true
  return context.role === 'authenticated' && (readers === 'signed_in' || context.userId === ownerId)
}

/** The error that a client receives when the record is too large for the event log. */
const tooLarge = 'Error 413: Payload Too Large'

/**
 * Returns the change as JSON. A deletion has only the key, and so has the old record of an update.
 * @param select the columns that the client wants; undefined for all
 */
export function changeText(
  change: ChangeEvent,
  { columns, keys }: TableFacts,
  schema: string,
  select: readonly string[] | undefined,
): string {
  const { type, table, at, id } = change
  const isWanted = (name: string) => select === undefined || select.includes(name)
  const keyOnly = keyOf(id, keys)
  const whole = change.record ?? keyOnly
  const record = Object.fromEntries(Object.entries(whole).filter(([name]) => isWanted(name)))
  return JSON.stringify({
    schema,
    table,
    commit_timestamp: at,
    type,
    columns: columns.filter(({ name }) => isWanted(name)).map(({ name, type }) => ({ name, type })),
    ...(type === 'DELETE' ? {} : { record }),
    ...(type === 'INSERT' ? {} : { old_record: keyOnly }),
    errors: change.record === undefined && type !== 'DELETE' ? [tooLarge] : null,
  })
}

/** Returns the key's columns with their values. */
function keyOf(id: RecordValue, keys: readonly string[]): Record<string, RecordValue> {
  const [first = 'id', ...more] = keys
  return more.length === 0 ? { [first]: id } : (id as Record<string, RecordValue>)
}
