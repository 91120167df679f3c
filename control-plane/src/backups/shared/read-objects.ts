// Reads a home's tables and objects, with the statements that create them again, in an order in which they can run.
import type pg from 'pg'
import { homeRoles, structureTables } from '../../homes/index.ts'
import { identifier } from '../../platform/identifiers.ts'
import { BackupError } from '../backup-error.ts'
import { roleNamed, type DumpEntry, type DumpTable, type StatementPart } from './dump-entry.ts'
import {
  definitionBytesSql,
  dependenciesSql,
  objectsSql,
  policiesSql,
  sequencesSql,
  tablesSql,
  unsupportedSql,
} from './object-queries.ts'

/** A tenant can create functions of any size. */
const maxDefinitionBytes = 32 * 1024 * 1024

interface ObjectRow {
  key: string
  kind: string
  identity: string
  phase: DumpEntry['phase']
  step: number
  head: string
  roles: string[]
  tail: string
}

interface ColumnRow {
  name: string
  type: string
  required: boolean
  generated: string
  identity: string
  expression: string | null
  collation: string | null
  storage: string | null
  compression: string | null
  sequence: string | null
}

interface TableRow {
  key: string
  name: string
  isService: boolean
  relkind: 'r' | 'p'
  persistence: string
  options: string | null
  partitionKey: string | null
  bound: string | null
  parent: string | null
  isTagged: boolean
  columns: ColumnRow[]
}

interface Ordered {
  key: string
  step: number
  entry: DumpEntry
}

/** The objects of a home, in an order in which they can be created again. */
export interface HomeObjects {
  /** Statements that create the objects. */
  entries: DumpEntry[]
  /** All tables with rows of their own; the service's first. */
  tables: DumpTable[]
  sequences: { name: string; isService: boolean }[]
}

/**
 * Reads the objects of a home.
 * @param client a session whose search path is the schema
 * @param homeId the tenant with whose roles the home was created
 * @throws BackupError for an object that a backup cannot contain
 */
export async function readHomeObjects(client: pg.Client, homeId: string, schema: string): Promise<HomeObjects> {
  const values = [schema, homeRoles(homeId).system]
  const unsupported = await client.query<{ what: string }>(unsupportedSql, [schema])
  if (unsupported.rows[0] !== undefined)
    throw new BackupError(
      'FAILED',
      `The home has ${unsupported.rows[0].what}, which backups of tenants that share a database do not support.`,
    )
  const {
    rows: [size],
  } = await client.query<{ bytes: string }>(definitionBytesSql, [...values, homeId])
  if (Number(size?.bytes) > maxDefinitionBytes)
    throw new BackupError('FAILED', `The definitions of the home's objects have more than ${maxDefinitionBytes} bytes.`)
  const { rows: tables } = await client.query<TableRow>(tablesSql, [...values, homeId])
  const { rows: others } = await client.query<ObjectRow>(objectsSql, values)
  const { rows: policies } = await client.query<ObjectRow>(policiesSql, values)
  const { rows: sequences } = await client.query<{ name: string; isService: boolean }>(sequencesSql, values)
  const objects = [
    ...tables.filter(({ isService }) => !isService).map(orderedTable),
    ...[...others, ...policies].flatMap((row) => orderedObject(row, homeId)),
  ]
  return {
    entries: ordered(objects, await dependencies(client, objects)),
    tables: tables
      .filter(({ relkind, name, isService }) => relkind === 'r' && !(isService && structureTables.includes(name)))
      .map(({ name, isService, isTagged, columns }) => ({
        name,
        isService,
        columns: columns
          .filter((column) => column.generated === '' && !(isTagged && column.name === 'tenant_id'))
          .map((column) => column.name),
      }))
      .sort((a, b) => Number(b.isService) - Number(a.isService)),
    sequences,
  }
}

/** The rights of roles of other homes are left out: they have no meaning elsewhere. */
function orderedObject({ key, kind, identity, phase, step, head, roles, tail }: ObjectRow, homeId: string): Ordered[] {
  const named = roles.flatMap((name) => roleNamed(homeId, name) ?? [])
  if (roles.length > 0 && named.length === 0) return []
  const tagged = ` check ((tenant_id = '${homeId}'::text))`
  const statement: StatementPart[] =
    kind === 'constraint' && head.toLowerCase().endsWith(tagged)
      ? [`${head.slice(0, -tagged.length)} check (tenant_id = `, { tenant: true }, ')']
      : [head, ...named.flatMap((role, index) => (index === 0 ? [{ role }] : [', ', { role }])), tail]
  const suffix = named.length === 0 ? '' : ` ${named.sort().join(',')}`
  return [{ key, step, entry: { kind, identity: `${identity}${suffix}`, phase, statement } }]
}

function orderedTable(table: TableRow): Ordered {
  const { key, name, persistence, options, partitionKey, bound, parent, columns } = table
  const head = `create ${persistence === 'u' ? 'unlogged ' : ''}table ${identifier(name)}`
  const body: StatementPart[] =
    bound === null
      ? [' (', ...columns.flatMap((column, index) => [index === 0 ? '' : ', ', ...columnParts(column, table)]), ')']
      : [` partition of ${parent ?? ''} ${bound}`]
  const tail = [
    partitionKey === null ? '' : ` partition by ${partitionKey}`,
    options === null || options === '' ? '' : ` with (${options})`,
  ].join('')
  const settings = columns.flatMap(({ name: column, storage }) =>
    storage === null
      ? []
      : [
          `;\nalter table ${identifier(name)} alter column ${identifier(column)} set storage ${storages[storage] ?? 'default'}`,
        ],
  )
  const described = columns.map(({ name: column, type, required }) => `${column} ${type} ${required}`)
  return {
    key,
    step: 4,
    entry: {
      kind: 'table',
      identity: `${name} (${described.join(', ')})`,
      phase: 'before',
      statement: [head, ...body, tail, ...settings],
    },
  }
}

const storages: Record<string, string> = { p: 'plain', e: 'external', m: 'main', x: 'extended' }

function columnParts(column: ColumnRow, { isTagged }: TableRow): StatementPart[] {
  const { name, type, required, generated, identity, expression, collation, compression, sequence } = column
  const parts: StatementPart[] = [`${identifier(name)} ${type}`]
  if (compression !== null) parts.push(` compression ${compression}`)
  if (collation !== null) parts.push(` collate ${collation}`)
  if (identity !== '')
    parts.push(` generated ${identity === 'a' ? 'always' : 'by default'} as identity (${sequence ?? ''})`)
  else if (expression !== null && generated !== '')
    parts.push(` generated always as (${expression}) ${generated === 's' ? 'stored' : 'virtual'}`)
  else if (expression !== null && isTagged && name === 'tenant_id') parts.push(' default ', { tenant: true })
  else if (expression !== null) parts.push(` default ${expression}`)
  if (required) parts.push(' not null')
  return parts
}

/** Returns the keys on which each key depends. */
async function dependencies(client: pg.Client, objects: readonly Ordered[]): Promise<Map<string, Set<string>>> {
  const keys = objects.flatMap(({ key }) => (/^\d+:\d+$/.test(key) ? [key] : []))
  const [classes, oids] = [keys.map((key) => key.split(':')[0]), keys.map((key) => key.split(':')[1])]
  const { rows } = await client.query<{ from: string; to: string }>(dependenciesSql, [classes, oids])
  const found = new Map<string, Set<string>>()
  for (const { from, to } of rows) {
    if (from !== to) found.set(from, (found.get(from) ?? new Set()).add(to))
  }
  return found
}

/** The step of an object that must follow constraints, for example a view that groups by a primary key. */
const movedStep = 13

/**
 * Orders the entries: each follows what it depends on.
 * @throws BackupError for a circle, which no single statements can create
 */
function ordered(objects: readonly Ordered[], needs: ReadonlyMap<string, ReadonlySet<string>>): DumpEntry[] {
  const byKey = new Map(objects.map((object) => [object.key, object]))
  const needed = ({ key }: Ordered) => [...(needs.get(key) ?? [])].flatMap((other) => byKey.get(other) ?? [])
  for (let hasMoved = true; hasMoved;) {
    hasMoved = false
    for (const object of objects) {
      if (object.entry.phase !== 'before' || !needed(object).some(({ entry }) => entry.phase === 'after')) continue
      object.entry.phase = 'after'
      object.step = movedStep
      hasMoved = true
    }
  }
  const result: DumpEntry[] = []
  const states = new Map<Ordered, 'open' | 'done'>()
  const visit = (object: Ordered) => {
    const state = states.get(object)
    if (state === 'done') return
    if (state === 'open')
      throw new BackupError('FAILED', `The ${object.entry.kind} "${object.entry.identity}" depends on itself.`)
    states.set(object, 'open')
    for (const other of needed(object)) if (other.entry.phase === object.entry.phase) visit(other)
    states.set(object, 'done')
    result.push(object.entry)
  }
  const sorted = [...objects].sort((a, b) => a.step - b.step || compare(a.entry.identity, b.entry.identity))
  for (const phase of ['before', 'after', 'default'] as const) {
    for (const object of sorted) if (object.entry.phase === phase) visit(object)
  }
  return result
}

const compare = (a: string, b: string) => (a < b ? -1 : Number(a > b))
