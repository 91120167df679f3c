// Checks a channel's subscriptions to changes when it joins, and gives their values the types of their columns.
import { crc32 } from 'node:zlib'
import { RoundTripError } from '../../database/round-trip-error.ts'
import type { Tenant } from '../../tenancy/tenant.ts'
import type { WantedChanges } from '../protocol/join-config.ts'
import { changeTypes, type ChangeSchema, type ChangeType } from './change-event.ts'
import { parseRecord, type RecordValue } from './compare-values.ts'
import { noFilter, type Filter, type TypedCondition } from './match-filter.ts'
import { isPatternOperator, readFilter, SubscriptionError, type Condition } from './read-filter.ts'
import { storageFacts, storageTableNames } from './storage-schema.ts'
import { changesContext, type KnownTables, type TableFacts } from './table-facts.ts'

/** A subscription to changes that can be served. */
export interface Subscription {
  /** Identifies the subscription in its channel. It is greater than 0. */
  id: number
  type: ChangeType | '*'
  /** The schema whose changes it is for; `*` for all. */
  source: ChangeSchema | '*'
  /** Undefined for all tables with events. */
  table: string | undefined
  /** The name of the tenant's own schema in changes. */
  schema: string
  filter: Filter
  select: readonly string[] | undefined
  wanted: WantedChanges
}

/** The name that clients use for the tenant's schema. */
const publicSchema = 'public'
/** The name of the schema in which clients of Supabase find files. */
const storageSchema = 'storage'
/** The number of patterns and regular expressions of a channel. */
const maxPatterns = 10

/**
 * Checks the subscriptions of a channel.
 * @throws SubscriptionError; RoundTripError when the database does not respond
 */
export async function planSubscriptions(
  tenant: Tenant,
  tables: KnownTables,
  wanted: readonly WantedChanges[],
): Promise<Subscription[]> {
  const ids = new Set<number>()
  const planned: Subscription[] = []
  for (const changes of wanted) {
    let id = crc32(JSON.stringify(changes)) >>> 1 || 1
    while (ids.has(id)) id++
    ids.add(id)
    planned.push({ id, ...(await plan(tenant, tables, changes)), wanted: changes })
  }
  const patterns = planned.reduce((sum, { filter }) => sum + filter.patterns.length, 0)
  if (patterns > maxPatterns)
    throw new SubscriptionError(
      `A channel has at most ${maxPatterns} patterns and regular expressions, not ${patterns}.`,
    )
  return planned
}

async function plan(
  tenant: Tenant,
  tables: KnownTables,
  { event, schema, table, filter, select }: WantedChanges,
): Promise<Omit<Subscription, 'id' | 'wanted'>> {
  const type = [...changeTypes, '*' as const].find((known) => known === event)
  if (type === undefined)
    throw new SubscriptionError(`Unknown event "${event.slice(0, 100)}". Allowed: *, ${changeTypes.join(', ')}.`)
  const own = tenant.manifest.home.schema
  if (schema != null && ![publicSchema, storageSchema, own, '*'].includes(schema))
    throw new SubscriptionError(
      `Unknown schema "${schema.slice(0, 100)}". Allowed: ${publicSchema}, ${storageSchema}, *.`,
    )
  const shown = schema === own ? own : publicSchema
  const conditions = readFilter(filter ?? '')
  if (table == null || table === '*') {
    if (conditions.length > 0 || select != null) throw new SubscriptionError('A filter and "select" require a table.')
    const source = schema === '*' || schema === storageSchema ? schema : publicSchema
    return { type, source, table: undefined, schema: shown, filter: noFilter, select: undefined }
  }
  const source = schema === storageSchema ? storageSchema : publicSchema
  const facts = source === storageSchema ? requireStorage(table) : await requireEvents(tenant, tables, table)
  for (const name of select ?? []) requireColumn(facts, table, name)
  return {
    type,
    source,
    table,
    schema: shown,
    filter: await typedFilter(tenant, facts, table, conditions),
    select: select ?? undefined,
  }
}

function requireStorage(table: string): TableFacts {
  const facts = storageFacts(table)
  if (facts === undefined)
    throw new SubscriptionError(
      `Unknown table "${table.slice(0, 100)}" of the schema "${storageSchema}". Allowed: ${storageTableNames.join(', ')}.`,
    )
  return facts
}

async function requireEvents(tenant: Tenant, tables: KnownTables, table: string): Promise<TableFacts> {
  const facts = await tables.get(tenant, table)
  const name = table.slice(0, 100)
  if (facts === undefined)
    throw new SubscriptionError(
      `Changes of the table "${name}" are not events. Set "events": true in its schema, and reload the schemas. For a` +
        ` table that you created with SQL, run: select realtime_follow('${name}')`,
    )
  return facts
}

function requireColumn({ columns }: TableFacts, table: string, name: string) {
  const column = columns.find((known) => known.name === name)
  if (column === undefined)
    throw new SubscriptionError(
      `The table "${table}" has no column "${name.slice(0, 100)}". It has: ${columns.map((known) => known.name).join(', ')}.`,
    )
  return column
}

/** The types of Postgres whose values this process orders as Postgres does. */
const orderedTypes = [
  ...['int2', 'int4', 'int8', 'float4', 'float8', 'numeric', 'text', 'varchar', 'bpchar', 'uuid', 'bool'],
  ...['date', 'timestamp', 'timestamptz', 'time'],
]

async function typedFilter(
  tenant: Tenant,
  facts: TableFacts,
  table: string,
  conditions: readonly Condition[],
): Promise<Filter> {
  const typed: TypedCondition[] = []
  for (const condition of conditions) {
    const { column: name, operator, values } = condition
    const column = requireColumn(facts, table, name)
    if (['lt', 'lte', 'gt', 'gte'].includes(operator) && !orderedTypes.includes(column.type))
      throw new SubscriptionError(`Values of the type ${column.type} of the column "${name}" cannot be ordered.`)
    const isText = operator === 'is' || isPatternOperator(operator)
    typed.push({ ...condition, values: isText ? values : await typedValues(tenant, column, values) })
    if (operator === 'match' || operator === 'imatch') await checkExpression(tenant, values[0] ?? '')
  }
  return {
    conditions: typed.filter(({ operator }) => !isPatternOperator(operator)),
    patterns: typed.filter(({ operator }) => isPatternOperator(operator)),
  }
}

/** Returns values as JSON shows values of the column. */
async function typedValues(
  tenant: Tenant,
  { name, type, definition }: { name: string; type: string; definition: string },
  values: readonly string[],
): Promise<RecordValue[]> {
  const text =
    `select to_jsonb(v::${definition})::text as value` +
    ' from jsonb_array_elements_text($1::jsonb) with ordinality e (v, n) order by n'
  const rows = await rejectingValues(
    () => tenant.database.query(changesContext, text, JSON.stringify(values)),
    `A value of the column "${name}" is not of its type ${type}`,
  )
  return rows.map((row) => parseRecord(`{"value":${String(row['value'])}}`)['value'])
}

async function checkExpression({ database }: Tenant, pattern: string): Promise<void> {
  await rejectingValues(
    () => database.query(changesContext, `select '' ~ $1 as matches`, pattern),
    `Invalid regular expression "${pattern.slice(0, 100)}"`,
  )
}

/** Runs a query, whose failure because of a value is the client's error. */
async function rejectingValues(
  run: () => Promise<{ rows: Record<string, unknown>[] }>,
  what: string,
): Promise<Record<string, unknown>[]> {
  try {
    return (await run()).rows
  } catch (error) {
    if (!(error instanceof RoundTripError) || error.sqlstate?.startsWith('22') !== true) throw error
    throw new SubscriptionError(`${what}: ${error.message}.`, { cause: error })
  }
}
