// The system collections of a home: numbered SQL files of the runtime with a few tokens filled in. Pure but for `load`.
import { createHash } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { identifier, literal } from './identifiers.ts'
import { homeRoles } from './home-sql.ts'

export interface HomeMigration {
  version: number
  name: string
  sql: string
}

/**
 * Tokens that a migration may use:
 * - `{{tenant_id}}`   the tenant's id as a text literal
 * - `{{runtime}}`     the runtime's role as an identifier, for grants
 * - `{{tenant}}`, `{{role}}`, `{{user_id}}`  the caller's context, evaluated once per query, NULL when not set
 */
const tokens: Record<string, (tenantId: string) => string> = {
  tenant_id: (tenantId) => literal(tenantId),
  runtime: (tenantId) => identifier(homeRoles(tenantId).runtime),
  tenant: () => setting('app.tenant_id'),
  role: () => setting('app.role'),
  user_id: () => setting('app.user_id'),
}

function setting(name: string): string {
  return `(select nullif(current_setting('${name}', true), ''))`
}

/** Reads `NNN_name.sql` files in their numbers' order. */
export async function loadHomeMigrations(directory: string): Promise<HomeMigration[]> {
  const files = (await readdir(directory)).filter((file) => file.endsWith('.sql')).sort()
  return Promise.all(
    files.map(async (file) => {
      const match = /^(\d{3})_([a-z0-9_]+)\.sql$/.exec(file)
      if (match === null) throw new Error(`${file} is no migration's name: want NNN_name.sql`)
      return { version: Number(match[1]), name: match[2] ?? '', sql: await readFile(join(directory, file), 'utf8') }
    }),
  )
}

export function fillTokens(sql: string, tenantId: string): string {
  return sql.replaceAll(/\{\{(\w+)\}\}/g, (_, token: string) => {
    const value = tokens[token]
    if (value === undefined) throw new Error(`unknown token {{${token}}} in a home migration`)
    return value(tenantId)
  })
}

/** Changes when any migration's text does: stored with a tenant, it tells which homes need a run. */
export function migrationsFingerprint(migrations: HomeMigration[]): string {
  return createHash('sha256').update(JSON.stringify(migrations)).digest('hex')
}

const ledger = (ifNotExists: 'if not exists' | '') =>
  `create table ${ifNotExists} home_migrations` +
  ' (version integer primary key, name varchar(100) not null, applied_at timestamptz not null default now())'

const recorded = ({ version, name }: HomeMigration) => `insert into home_migrations (version, name) values (${version}, ${literal(name)})`

/** Every migration, for a home whose schema the same transaction has just made; for the owner's role. */
export function firstMigrationsSql(tenantId: string, migrations: HomeMigration[]): string {
  return [ledger(''), ...migrations.flatMap((migration) => [fillTokens(migration.sql, tenantId).replace(/;\s*$/, ''), recorded(migration)])].join(';\n')
}

/**
 * One transaction that applies every migration the home lacks, in a single round trip.
 * Runs as the home's ddl login; two at once wait for each other on the ledger's lock.
 */
export function migrateHomeSql(tenantId: string, migrations: HomeMigration[]): string {
  const schema = identifier(tenantId)
  const steps = migrations.map(
    (migration) =>
      `do $migrate$ begin\n` +
      `if not exists (select from home_migrations where version = ${migration.version}) then\n` +
      `execute ${literal(fillTokens(migration.sql, tenantId))};\n` +
      `${recorded(migration)};\n` +
      `end if; end $migrate$`,
  )
  return [
    'begin',
    `set local search_path = ${schema}`,
    ledger('if not exists'),
    'lock table home_migrations in share row exclusive mode',
    ...steps,
    'commit',
  ].join(';\n')
}
