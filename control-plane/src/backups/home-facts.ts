// Reads the figures by which two copies of a home are compared: the rows and content of every table, the state of every
// sequence, and the schema's other objects. The queries run in a database where a tenant may have created anything, so
// none of its code may run: the types' own output functions print values, casts are not used, and views are excluded.
import { createHash } from 'node:crypto'
import { identifier, literal } from '../platform/identifiers.ts'
import { BackupError } from './backup-error.ts'
import type { HomeFacts } from './manifest.ts'

/** Runs one `copy (…) to stdout` and returns the lines as Postgres writes them. */
export type QueryRows = (query: string) => Promise<string[]>

/** Statements for a session that reads a home, so that equal values give equal texts everywhere. */
export const readingSettings = [
  'set row_security = off',
  "set datestyle = 'ISO, YMD'",
  "set intervalstyle = 'postgres'",
  "set timezone = 'UTC'",
  "set bytea_output = 'hex'",
  'set extra_float_digits = 1',
  "set lock_timeout = '60s'",
]

/** Statements that begin a session which reads facts of a tenant's own database. */
export const factSettings = [
  "set search_path = ''",
  "set restrict_nonsystem_relation_kind = 'view, foreign-table'",
  ...readingSettings,
]

export async function readFacts(schema: string, query: QueryRows, rowHash: RowHash): Promise<HomeFacts> {
  return { ...(await readContent(schema, query, rowHash)), objects: await readObjects(schema, query) }
}

/** Reads the facts that exist as soon as the rows do, before indexes, triggers and policies. */
export async function readContent(
  schema: string,
  query: QueryRows,
  rowHash: RowHash,
): Promise<Pick<HomeFacts, 'tables' | 'sequences'>> {
  const tables: HomeFacts['tables'] = []
  for (const name of await query(namesOf(schema, 'r'))) {
    const [line = ''] = await query(contentOf(schema, unescaped(name), rowHash))
    const [rows = '', hash = ''] = line.split('\t')
    tables.push({ name: unescaped(name), rows, hash })
  }
  return { tables, sequences: await readSequences(schema, query) }
}

export async function readSequences(schema: string, query: QueryRows): Promise<HomeFacts['sequences']> {
  const sequences: HomeFacts['sequences'] = []
  for (const name of await query(namesOf(schema, 'S'))) {
    const [line = ''] = await query(
      `select last_value, is_called from ${identifier(schema)}.${identifier(unescaped(name))}`,
    )
    const [value = '', called = ''] = line.split('\t')
    sequences.push({ name: unescaped(name), last_value: value, is_called: called === 't' })
  }
  return sequences
}

/** Compares the sequences that were read before and after a dump. The value of one that has moved is null. */
export function settledSequences(
  before: HomeFacts['sequences'],
  after: HomeFacts['sequences'],
): HomeFacts['sequences'] {
  const later = new Map(after.map((sequence) => [sequence.name, sequence]))
  return before.map((sequence) => {
    const { last_value: value, is_called: called } = later.get(sequence.name) ?? {}
    return value === sequence.last_value && called === sequence.is_called ? sequence : { ...sequence, last_value: null }
  })
}

export async function readObjects(schema: string, query: QueryRows): Promise<HomeFacts['objects']> {
  const kinds = new Map<string, string[]>()
  for (const line of await query(objectsOf(schema))) {
    const [kind = '', text = ''] = line.split('\t')
    const texts = kinds.get(kind) ?? []
    texts.push(text)
    kinds.set(kind, texts)
  }
  return [...kinds].map(([kind, texts]) => ({
    kind,
    count: texts.length,
    sha256: createHash('sha256').update(texts.join('\n')).digest('hex'),
  }))
}

/**
 * Compares tables and sequences.
 * @throws BackupError MISMATCH that names the first difference, in names and counts only
 */
export function compareContent(
  wanted: Pick<HomeFacts, 'tables' | 'sequences'>,
  found: Pick<HomeFacts, 'tables' | 'sequences'>,
): void {
  const tables = new Map(found.tables.map((table) => [table.name, table]))
  for (const { name, rows, hash } of wanted.tables) {
    const other = tables.get(name)
    if (other === undefined) throw mismatch(`the table "${name}" is missing`)
    if (other.rows !== rows) throw mismatch(`the table "${name}" has ${other.rows} rows instead of ${rows}`)
    if (other.hash !== hash) throw mismatch(`the content of the table "${name}" differs`)
  }
  const sequences = new Map(found.sequences.map((sequence) => [sequence.name, sequence]))
  for (const { name, last_value: value, is_called: called } of wanted.sequences) {
    const other = sequences.get(name)
    if (other === undefined) throw mismatch(`the sequence "${name}" is missing`)
    if (value !== null && (other.last_value !== value || other.is_called !== called))
      throw mismatch(`the value of the sequence "${name}" differs`)
  }
  if (found.tables.length !== wanted.tables.length || found.sequences.length !== wanted.sequences.length)
    throw mismatch('there are tables or sequences that are not in the backup')
}

/**
 * Compares other objects.
 * @throws BackupError MISMATCH
 */
export function compareObjects(wanted: HomeFacts['objects'], found: HomeFacts['objects']): void {
  const kinds = new Map(found.map((kind) => [kind.kind, kind]))
  for (const { kind, count, sha256 } of wanted) {
    const other = kinds.get(kind)
    if (other?.count !== count)
      throw mismatch(`there are ${other?.count ?? 0} objects of the kind "${kind}" instead of ${count}`)
    if (other.sha256 !== sha256) throw mismatch(`the objects of the kind "${kind}" differ`)
  }
  if (found.length !== wanted.length) throw mismatch('there are kinds of objects that are not in the backup')
}

function mismatch(what: string): BackupError {
  const loadFailure = { kind: 'different', what } as const
  return new BackupError('MISMATCH', `The restored home differs from the backup: ${what}.`, { loadFailure })
}

const namespaceOf = (schema: string) => `(select oid from pg_catalog.pg_namespace where nspname = ${literal(schema)})`

function namesOf(schema: string, kind: 'r' | 'S'): string {
  return (
    `select relname from pg_catalog.pg_class where relnamespace = ${namespaceOf(schema)} and relkind = '${kind}'` +
    ` order by relname collate "C"`
  )
}

const half = (from: number) =>
  `coalesce(pg_catalog.sum(('x' || pg_catalog.substr(h, ${from}, 15))::pg_catalog.bit(60)::pg_catalog.int8), 0)`

/** The sum of the rows' MD5 hashes in the column `h`, which does not depend on the order of the rows. */
export const hashSumSql = `${half(1)} || '.' || ${half(17)}`

const textHash = (seed: number) => `coalesce(pg_catalog.sum(pg_catalog.hashtextextended(h collate "C", ${seed})), 0)`

/** The hash of a table from its rows as text: the column `h` of each row, and the sum over all rows. */
const rowHashes = {
  md5: { ofRow: (text: string) => `pg_catalog.md5(${text})`, sum: hashSumSql },
  /** Two hashes of 64 bits, as in partitions by hash. It needs a third of the time. */
  hashtext: { ofRow: (text: string) => text, sum: `${textHash(0)} || '.' || ${textHash(1)}` },
}

/** The way in which a backup hashes rows. */
export type RowHash = keyof typeof rowHashes

/** Returns a query for a table's row count and hash. `format` uses no casts. */
function contentOf(schema: string, table: string, rowHash: RowHash): string {
  const { ofRow, sum } = rowHashes[rowHash]
  return (
    `select pg_catalog.count(*), ${sum}` +
    ` from (select ${ofRow("pg_catalog.format('%s', tenantry_row)")} as h` +
    ` from only ${identifier(schema)}.${identifier(table)} as tenantry_row offset 0) as hashed`
  )
}

/**
 * Returns a query for the names of objects, and for the properties that parsing and printing preserve. Expressions are
 * not among them.
 */
function objectsOf(schema: string): string {
  const inSchema = (column: string) => `${column} = ${namespaceOf(schema)}`
  const described = [
    `select 'column', format('%s.%s %s %s', c.relname, a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull)
       from pg_attribute a join pg_class c on c.oid = a.attrelid
       where ${inSchema('c.relnamespace')} and c.relkind in ('r', 'p', 'v', 'm') and a.attnum > 0 and not a.attisdropped`,
    `select 'index', relname::text from pg_class where ${inSchema('relnamespace')} and relkind in ('i', 'I')`,
    `select 'view', format('%s %s', relname, relkind) from pg_class where ${inSchema('relnamespace')} and relkind in ('v', 'm', 'p')`,
    `select 'function',
       format('%s(%s) %s %s %s', proname, pg_get_function_identity_arguments(oid), prosecdef, md5(prosrc), proacl is null)
       from pg_proc where ${inSchema('pronamespace')}`,
    `select 'trigger', format('%s.%s %s', c.relname, t.tgname, t.tgenabled)
       from pg_trigger t join pg_class c on c.oid = t.tgrelid
       where ${inSchema('c.relnamespace')} and not t.tgisinternal`,
    `select 'policy', format('%s.%s %s %s', c.relname, p.polname, p.polcmd, p.polpermissive)
       from pg_policy p join pg_class c on c.oid = p.polrelid where ${inSchema('c.relnamespace')}`,
    `select 'row security', format('%s %s %s', relname, relrowsecurity, relforcerowsecurity)
       from pg_class where ${inSchema('relnamespace')} and relkind in ('r', 'p')`,
    `select 'constraint', format('%s.%s %s %s', c.relname, n.conname, n.contype, n.convalidated)
       from pg_constraint n join pg_class c on c.oid = n.conrelid where ${inSchema('c.relnamespace')}`,
    `select 'grant', format('%s %s', c.relname, granted) from pg_class c, unnest(c.relacl) as granted where ${inSchema('c.relnamespace')}`,
    `select 'type', format('%s %s', typname, typtype) from pg_type where ${inSchema('typnamespace')} and typtype in ('d', 'e', 'r')`,
  ]
  return `select kind, text from (${described.join(' union all ')}) as described (kind, text) order by kind collate "C", text collate "C"`
}

/** Reads a name from the text format of COPY. */
function unescaped(text: string): string {
  const controls: Record<string, string> = { b: '\b', f: '\f', n: '\n', r: '\r', t: '\t', v: '\v' }
  return text.replaceAll(/\\(.)/g, (_, letter: string) => controls[letter] ?? letter)
}
