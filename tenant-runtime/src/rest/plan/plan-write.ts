// Plans a write against its relation: the columns, the records, and the treatment of conflicts. Pure.
import type { Column, Relation } from '../registry/catalog.ts'
import { checkSchema } from '../registry/check-schema.ts'
import type { Preferences } from '../request/read-preferences.ts'
import type { Query } from '../request/read-query.ts'
import { restError } from '../rest-error.ts'
import type { Insert, Update } from '../sql/change-sql.ts'
import { checkRecord, unknownField } from './check-record.ts'
import type { RequestBody } from './request-body.ts'
import { typedBody } from './typed-body.ts'

const maxRecords = 10_000

export function requireWritable({ name, writable }: Relation): void {
  if (writable === 'no') {
    throw restError('FORBIDDEN', {
      code: '42501',
      message: `The collection "${name}" is read-only. Use the interface that it belongs to.`,
    })
  }
}

/**
 * Plans an insert.
 * @throws RuntimeError that names the record and the invalid field
 */
export function planInsert(
  relation: Relation,
  sent: RequestBody | undefined,
  query: Query,
  preferences: Preferences,
): Insert {
  requireWritable(relation)
  const body = typedBody(relation, sent)
  if (body === undefined)
    throw restError('INVALID_JSON', {
      code: 'PGRST102',
      message: 'The body is empty. It must be a record, or an array of records.',
    })
  const isMany = Array.isArray(body.value)
  const records: unknown[] = isMany ? (body.value as unknown[]) : [body.value]
  if (records.length > maxRecords)
    throw restError('BODY_TOO_LARGE', { code: 'PGRST102', message: `The body has more than ${maxRecords} records.` })
  const named = namedColumns(relation, query)
  // Members of a schema that are left out have defaults.
  if (named === undefined && relation.writable !== 'schemas') requireSameKeys(records)
  const checked = records.map((record, n) => recordOf(relation, record, 'insert', isMany ? `[${n}]` : '', named))
  const columns = columnsOf(relation, named ?? new Set(checked.flatMap((record) => Object.keys(record))))
  const isAsSent = relation.writable === 'yes'
  return {
    relation,
    columns,
    values: isAsSent && records.length === 1 ? valuesOf(columns, checked[0]) : undefined,
    records: isAsSent ? (isMany ? body.text : `[${body.text}]`) : JSON.stringify(checked),
    count: records.length,
    withDefaults: preferences.missing === 'default' && columns.some((column) => column.default !== undefined),
    conflict: conflictOf(relation, query.onConflict, preferences),
    where: [],
  }
}

/**
 * Checks that all records have the same keys, because without `columns` it is not clear what the others are to become.
 * @throws RuntimeError BAD_REQUEST (PGRST102)
 */
function requireSameKeys([first, ...others]: readonly unknown[]): void {
  if (!isObject(first)) return
  const keys = Object.keys(first)
  const isSame = (record: object) => {
    const own = Object.keys(record)
    return own.length === keys.length && own.every((key) => Object.hasOwn(first, key))
  }
  if (!others.every((record) => !isObject(record) || isSame(record)))
    throw restError('BAD_REQUEST', { code: 'PGRST102', message: 'All object keys must match' })
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Plans an update of the body's fields; none when the body is `{}`. */
export function planUpdate(
  relation: Relation,
  sent: RequestBody | undefined,
  query: Query,
  { missing }: Preferences,
): Update {
  requireWritable(relation)
  const body = typedBody(relation, sent)
  if (body === undefined)
    throw restError('INVALID_JSON', {
      code: 'PGRST102',
      message: 'The body is empty. It must have the fields to change.',
    })
  const named = namedColumns(relation, query)
  // Some clients send an array of one record.
  const value: unknown = Array.isArray(body.value) && body.value.length === 1 ? body.value[0] : body.value
  const record = recordOf(relation, value, 'update', '', named)
  const isAsSent = relation.writable === 'yes' && value === body.value
  const columns = columnsOf(relation, named ?? new Set(Object.keys(record)))
  const withDefaults = missing === 'default' && columns.some((column) => column.default !== undefined)
  return {
    columns,
    record: isAsSent ? body.text : JSON.stringify(record),
    values: isAsSent && !withDefaults ? valuesOf(columns, record) : undefined,
    withDefaults,
  }
}

/**
 * Returns a record's values one by one where that is faster and exact: for fields of schemas with known types other than
 * JSON.
 */
function valuesOf(columns: readonly Column[], record: Record<string, unknown> = {}): (string | null)[] | undefined {
  const values: (string | null)[] = []
  for (const { name, field } of columns) {
    const value = record[name] ?? null
    if (
      field === undefined ||
      (value !== null && typeof value !== 'string' && typeof value !== 'number' && typeof value !== 'boolean')
    )
      return undefined
    values.push(value === null ? null : String(value))
  }
  return values
}

function recordOf(
  relation: Relation,
  value: unknown,
  kind: 'insert' | 'update',
  location: string,
  named: ReadonlySet<string> | undefined,
): Record<string, unknown> {
  if (relation.writable === 'schemas') return schemaRecord(value, kind)
  if (named === undefined || typeof value !== 'object' || value === null || Array.isArray(value))
    return checkRecord(relation, value, kind, location)
  return checkRecord(
    relation,
    Object.fromEntries(Object.entries(value).filter(([name]) => named.has(name))),
    kind,
    location,
  )
}

/** Returns the columns of `columns=`. */
function namedColumns(relation: Relation, { columns }: Query): ReadonlySet<string> | undefined {
  if (columns === undefined) return undefined
  columnsOf(relation, new Set(columns))
  return new Set(columns)
}

function columnsOf(relation: Relation, names: ReadonlySet<string>): Column[] {
  for (const name of names) {
    if (!relation.columns.has(name)) throw unknownField(relation, name)
  }
  return [...relation.columns.values()].filter(({ name }) => names.has(name))
}

function conflictOf(
  relation: Relation,
  named: readonly string[] | undefined,
  { resolution }: Preferences,
): Insert['conflict'] {
  if (resolution === undefined) return undefined
  for (const name of named ?? []) columnsOf(relation, new Set([name]))
  const wanted = named === undefined || named.length === 0 ? relation.key : named
  // Without a key no record is a duplicate.
  if (wanted.length === 0) return undefined
  return { columns: uniqueSet(relation, wanted), merges: resolution === 'merge-duplicates' }
}

/** Returns the unique set of columns as Postgres knows it, including hidden columns. */
function uniqueSet({ unique, columns }: Relation, wanted: readonly string[]): readonly string[] {
  const isMeant = (set: readonly string[]) => {
    const visible = set.filter((name) => columns.has(name))
    return visible.length === wanted.length && wanted.every((name) => visible.includes(name))
  }
  return unique.find(isMeant) ?? wanted
}

/** Checks a row of `schemas`: as a whole when it is new, by its parts when it is changed. A reload checks it again. */
function schemaRecord(value: unknown, kind: 'insert' | 'update'): Record<string, unknown> {
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw restError('BAD_REQUEST', { code: 'PGRST102', message: 'The body must be an object.' })
  const { name, fields, rls_policy, events, ...others } = value as Record<string, unknown>
  const [first] = Object.keys(others)
  if (first !== undefined)
    throw restError('UNKNOWN_FIELD', {
      code: 'PGRST204',
      message: `The collection "schemas" has no writable field "${first}".`,
    })
  const policy = rls_policy ?? { type: 'service' }
  if (kind === 'insert') {
    checkSchema({ name, fields, rls_policy: policy, events })
    return { name, fields, rls_policy: policy, events: events ?? false }
  }
  checkSchema({
    name: name ?? 'unchanged',
    fields: fields ?? [{ name: 'id', type: 'uuid', primary: true }],
    rls_policy: policy,
    events,
  })
  return {
    ...(name === undefined ? {} : { name }),
    ...(fields === undefined ? {} : { fields }),
    ...(rls_policy === undefined ? {} : { rls_policy }),
    ...(events === undefined ? {} : { events }),
  }
}
