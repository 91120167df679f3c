// Loads the dump of a home into a new schema, and compares it. The service's tables are created by the migrations of that
// time, and filled before any object of the tenant exists; everything else is created by a login of its own, never by the
// superuser.
import type pg from 'pg'
import {
  closeSchemaSql,
  createHomeSql,
  firstHomeSql,
  grantDefaultsSql,
  homeConnectionLimits,
  homeRoles,
  newVerifiers,
  noLoginSql,
  type HomeMigration,
} from '../../homes/index.ts'
import { identifier, literal } from '../../platform/identifiers.ts'
import { isLostConnection } from '../../platform/lost-connection.ts'
import { isState } from '../../platform/sql-state.ts'
import { BackupError } from '../backup-error.ts'
import { compareContent, compareObjects } from '../home-facts.ts'
import type { HomeFacts, Manifest } from '../manifest.ts'
import { freshCountersSql, renumberEventsSql } from '../rehome-sql.ts'
import { copyIn } from './copy-in.ts'
import { readSharedFacts, readSharedState } from './dump-home.ts'
import { statementText, type DumpEntry, type DumpHeader, type DumpSequence, type DumpTable } from './dump-entry.ts'
import type { Frame } from './dump-frames.ts'
import { readHomeObjects } from './read-objects.ts'
import { adoptLoadedSql, asAdmin, asLoader, asReader, type SharedLocation } from './shared-server.ts'

const diskFull = '53100'

export interface LoadDump {
  location: SharedLocation
  /** The tenant with whose roles the home is created. */
  homeId: string
  /** The new schema: the tenant's ID, or another name next to a schema that is in use. */
  schema: string
  /** Passwords of the logins, when the roles are to be created; they stay closed. */
  passwords: { runtime: string; ddl: string; admin: string } | undefined
  manifest: Pick<Manifest, 'tenant_id' | 'database_format'> & { home: DumpedHome }
  /** The dump. It is read to its end, or ended. */
  frames: AsyncGenerator<Frame, undefined>
  migrations: readonly HomeMigration[]
  onError: (error: unknown) => void
  /** Whether the home continues with its counters of use, because it moves. Otherwise they begin again. */
  continuesCounters?: boolean
  /** The login that compares; by default that of backups. */
  reader?: string
}

/** The figures that the loaded home must have. Without `tables`, the caller compares the content of the tables. */
type DumpedHome = Omit<HomeFacts, 'tables'> & Partial<Pick<HomeFacts, 'tables'>>

/**
 * Loads a dump. The schema must not exist.
 * @throws BackupError MISMATCH, DAMAGED, FAILED
 */
export async function loadDump(options: LoadDump, signal: AbortSignal): Promise<void> {
  const { location, homeId, schema, manifest, frames } = options
  try {
    const { done, value } = await frames.next()
    const header = done === true || value.type !== 'H' ? undefined : (json(value) as DumpHeader)
    if (header?.version !== 1) throw new BackupError('DAMAGED', 'The part "database" has no header.')
    await createSchema(options, header, signal)
    const defaults: DumpEntry[] = []
    await asLoader(location, homeId, schema, signal, (tenant) =>
      asAdmin(location, signal, (admin) => loadFrames(options, frames, { tenant, admin }, defaults)),
    )
    await asAdmin(location, signal, (client) => client.query(sealSql(options, defaults)))
  } finally {
    await frames.return(undefined)
  }
  const compare = async (client: pg.Client) => {
    const objects = await readHomeObjects(client, homeId, schema)
    const { tables, ...state } = manifest.home
    const found =
      tables === undefined
        ? { ...(await readSharedState(client, objects)), tables: [] }
        : await readSharedFacts(client, objects, manifest.database_format ?? 'frames')
    compareContent({ ...state, tables: tables ?? [] }, found)
    compareObjects(state.objects, found.objects)
  }
  await asReader(location, homeId, schema, signal, compare, options.reader)
  await asAdmin(location, signal, (client) => client.query(finishSql(options)))
}

async function createSchema(
  { location, homeId, schema, passwords, migrations }: LoadDump,
  { homeVersion }: DumpHeader,
  signal: AbortSignal,
): Promise<void> {
  if ((migrations.at(-1)?.version ?? 0) < homeVersion)
    throw new BackupError('FAILED', 'A newer release of the control plane has made the backup.')
  const { system } = homeRoles(homeId)
  const sql = [
    ...(passwords === undefined
      ? [`create schema ${identifier(schema)} authorization ${identifier(system)}`]
      : [createHomeSql(homeId, newVerifiers(passwords), homeConnectionLimits), noLoginSql(homeId)]),
    grantDefaultsSql(homeId, 'system', schema),
    `set local role ${identifier(system)}`,
    firstHomeSql(
      { homeId, schema, tenantId: homeId },
      migrations.filter(({ version }) => version <= homeVersion),
    ),
    'reset role',
    // Only a schema under the home's own name may be seen by the home's roles.
    ...(passwords === undefined ? [closeSchemaSql(homeId, schema)] : []),
  ]
  await asAdmin(location, signal, (client) => client.query(sql.join(';\n')))
}

interface Sessions {
  tenant: pg.Client
  admin: pg.Client
}

/** Loads everything after the header. Default privileges are returned in `defaults`. */
async function loadFrames(
  options: LoadDump,
  frames: AsyncGenerator<Frame, undefined>,
  { tenant, admin }: Sessions,
  defaults: DumpEntry[],
): Promise<void> {
  const { homeId, schema } = options
  // No trigger runs and no foreign key is checked while the superuser fills the service's tables: the rows are those of a
  // home without damage.
  await admin.query(`set search_path = ''; set session_replication_role = replica`)
  let next = await frames.next()
  const rows = async function* () {
    for (next = await frames.next(); next.done !== true && next.value.type === 'D'; next = await frames.next())
      yield next.value.content
  }
  while (next.done !== true) {
    const { type, content } = next.value
    if (type === 'T') {
      const table = json(next.value) as DumpTable
      const name = `${identifier(schema)}.${identifier(table.name)}`
      const text = `copy ${name} (${table.columns.map(identifier).join(', ')}) from stdin`
      const load = table.isService ? fillService(admin, name, text, rows()) : fillNew(tenant, name, text, rows())
      await load.catch((cause: unknown) => failed(options, `the rows of the table "${table.name}"`, cause))
      continue
    }
    if (type === 'E') {
      const entry = JSON.parse(content.toString()) as DumpEntry
      if (entry.phase === 'default') defaults.push(entry)
      else
        await tenant
          .query(statementText(entry.statement, homeId))
          .catch((cause: unknown) => failed(options, `the ${entry.kind} "${entry.identity}"`, cause))
    }
    if (type === 'S') {
      for (const { name, isService, value, isCalled } of json(next.value) as DumpSequence[]) {
        const sequence = literal(`${identifier(schema)}.${identifier(name)}`)
        await (isService ? admin : tenant).query(
          `select pg_catalog.setval(${sequence}, ${literal(value)}::pg_catalog.int8, ${String(isCalled)})`,
        )
      }
    }
    if (type === 'Z') return
    next = await frames.next()
  }
}

/** Fills a table of the service, into which the migrations have inserted rows too. */
async function fillService(admin: pg.Client, name: string, copy: string, rows: AsyncIterable<Buffer>): Promise<void> {
  await admin.query(`delete from ${name}`)
  await copyIn(admin, copy, rows)
}

/**
 * Fills a new table. Frozen rows are written once: otherwise, the first query would write every page again. Postgres freezes only
 * what is copied in the transaction that has emptied the table.
 */
async function fillNew(tenant: pg.Client, name: string, copy: string, rows: AsyncIterable<Buffer>): Promise<void> {
  await tenant.query(`begin; truncate ${name}`)
  await copyIn(tenant, `${copy} with (freeze)`, rows)
  await tenant.query('commit')
}

function failed({ onError }: LoadDump, what: string, cause: unknown): never {
  if (cause instanceof BackupError || isLostConnection(cause)) throw cause
  onError(cause)
  const subject = what.slice(0, 300)
  if (isState(cause, diskFull))
    throw notCreated('FAILED', `the disk of the Postgres server has no space left for ${subject}`, cause)
  throw notCreated('MISMATCH', `${subject} could not be created`, cause)
}

function notCreated(code: 'FAILED' | 'MISMATCH', what: string, cause: unknown): BackupError {
  const loadFailure = { kind: 'not created', what } as const
  return new BackupError(code, `The backup could not be restored: ${what}.`, { cause, loadFailure })
}

/** Returns SQL that gives the tenant's objects to the home's owner. It runs no code. */
function sealSql({ homeId, schema }: LoadDump, defaults: readonly DumpEntry[]): string {
  const creator = identifier(homeRoles(homeId).owner)
  return [
    adoptLoadedSql(homeId),
    ...defaults.map(
      ({ statement }) =>
        `alter default privileges for role ${creator} in schema ${identifier(schema)} ${statementText(statement, homeId)}`,
    ),
  ].join(';\n')
}

/** Returns SQL that adapts the service's rows to their new location, after the comparison. */
function finishSql({ homeId, schema, manifest, continuesCounters = false }: LoadDump): string {
  const space = identifier(schema)
  return [
    'set local session_replication_role = replica',
    ...(continuesCounters ? [] : [freshCountersSql(schema)]),
    ...(manifest.tenant_id === homeId ? [] : [renumberEventsSql(schema)]),
    `update ${space}.home_structure set definition = (select store_id::text from ${space}.storage_usage) where kind = 'store'`,
  ].join(';\n')
}

function json({ content }: Frame): unknown {
  return JSON.parse(content.toString())
}
