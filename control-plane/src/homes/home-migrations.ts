// The system collections of a home: numbered SQL files of the runtime with a few tokens filled in, and the SQL that brings a
// home to them and repairs what it lacks. Pure but for `load`.
import { createHash } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { identifier, literal } from '../platform/identifiers.ts'
import { grantDefaultsSql, type SystemParts } from './home-sql.ts'
import { homeRoles, pristineSchema } from './home-roles.ts'
import { repairHomeSql, repairReportSql } from './repair-home-sql.ts'

/**
 * One migration of the service's tables in a home, in the order of `version`; `sql` may hold the tokens of
 * `migrateHomeSql`.
 */
export interface HomeMigration {
  version: number
  name: string
  sql: string
}

/** Where a migration's objects are made, and for whom. */
interface MigrationTarget {
  /** The tenant whose roles there are; the home's schema has its name. */
  homeId: string
  /** The schema that the objects are made in. */
  schema: string
  /** The tenant whose rows the tables take; another one than `homeId` only while a backup is given to a new tenant. */
  tenantId: string
}

/** The home of a tenant, made in its own schema. */
export function ownTarget(tenantId: string): MigrationTarget {
  return { homeId: tenantId, schema: tenantId, tenantId }
}

/**
 * Tokens that a migration may use:
 * - `{{tenant_id}}`   the tenant's id as a text literal
 * - `{{schema}}`      the schema as an identifier
 * - `{{runtime}}`, `{{owner}}`, `{{ddl}}`  roles of the home as identifiers, for grants
 * - `{{tenant}}`, `{{role}}`, `{{user_id}}`  the caller's context, evaluated once per query, NULL when not set
 */
const tokens: Record<string, (target: MigrationTarget) => string> = {
  tenant_id: ({ tenantId }) => literal(tenantId),
  schema: ({ schema }) => identifier(schema),
  runtime: ({ homeId }) => identifier(homeRoles(homeId).runtime),
  owner: ({ homeId }) => identifier(homeRoles(homeId).owner),
  ddl: ({ homeId }) => identifier(homeRoles(homeId).ddl),
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

function fillTokens(sql: string, target: MigrationTarget): string {
  return sql.replaceAll(/\{\{(\w+)\}\}/g, (_, token: string) => {
    const value = tokens[token]
    if (value === undefined) throw new Error(`unknown token {{${token}}} in a home migration`)
    return value(target)
  })
}

/** Changes when any migration's text does: stored with a tenant, it tells which homes need a run. */
export function migrationsFingerprint(migrations: HomeMigration[]): string {
  return createHash('sha256').update(JSON.stringify(migrations)).digest('hex')
}

/** The first migration that names the schema of every object and runs with an empty search path. */
export const firstQualified = 16

const searchPath = (schema: string, version: number) =>
  `set local search_path = ${version < firstQualified ? identifier(schema) : "''"}`

const ledgerSql = (schema: string) =>
  `create table ${identifier(schema)}.home_migrations` +
  ' (version integer primary key, name varchar(100) not null, applied_at timestamptz not null default now())'

const recorded = (schema: string, { version, name }: HomeMigration) =>
  `insert into ${identifier(schema)}.home_migrations (version, name) values (${version}, ${literal(name)})`

/** Records the structure of a schema in which nothing but the migrations has made anything. */
const recordStructureSql = (schema: string) =>
  `insert into ${identifier(schema)}.home_structure select * from ${identifier(schema)}.home_structure_of(${literal(schema)}, '{}');\n` +
  `insert into ${identifier(schema)}.home_structure select 'store', 'id', store_id::text from ${identifier(schema)}.storage_usage`

/** Every migration, for a schema that the same transaction has just made; for the system role. */
export function firstMigrationsSql(target: MigrationTarget, migrations: readonly HomeMigration[]): string {
  const { schema } = target
  const hasStructure = migrations.some(({ version }) => version === firstQualified)
  return [
    ledgerSql(schema),
    ...migrations.flatMap((migration) => [
      searchPath(schema, migration.version),
      fillTokens(migration.sql, target).replace(/;\s*$/, ''),
      recorded(schema, migration),
    ]),
    "set local search_path = ''",
    ...(hasStructure ? [recordStructureSql(schema)] : []),
  ].join(';\n')
}

/** Names of what the migrations make; what one of them has dropped again does no harm. */
export function systemParts(migrations: readonly HomeMigration[]): SystemParts {
  const named = (pattern: RegExp) => [
    ...new Set(migrations.flatMap(({ sql }) => [...sql.matchAll(pattern)].map(([, name = '']) => name))),
  ]
  return {
    tables: ['home_migrations', ...named(/^create table (?:\{\{schema\}\}\.)?(\w+)/gm)],
    functions: named(/^create (?:or replace )?function (?:\{\{schema\}\}\.)?(\w+)/gm),
  }
}

/** Every home has it in which the service's tables belong to the system role. */
export const structureTable = 'home_structure'

/** What is wrong with the home: no rows where nothing is. For any login of the home. */
export function violationsSql(homeId: string): string {
  return `select problem from ${identifier(homeId)}.home_problems() as problem`
}

/** One row with the newest version that was applied. @throws SQLSTATE 42P01 where the ledger is lost or was never made */
export function appliedVersionSql(homeId: string): string {
  return `select max(version)::int as version from ${identifier(homeId)}.home_migrations`
}

/**
 * One transaction that repairs the home as of the version it has, applies every migration it lacks, and compares the
 * result with a pristine home of the newest version; its last result is the report of the repair. Runs as the home's
 * system login (`system-login.ts`).
 * @param applied the newest version that was applied; undefined where the ledger is lost or was never made
 */
export function migrateHomeSql(
  target: Omit<MigrationTarget, 'schema'>,
  migrations: readonly HomeMigration[],
  applied: number | undefined,
): string {
  const { homeId } = target
  const newest = migrations.at(-1)?.version ?? 0
  const missing = applied === undefined ? [] : migrations.filter(({ version }) => version > applied)
  const known = migrations.filter(({ version }) => version <= (applied ?? 0))
  return [
    'begin',
    "set local search_path = ''",
    'set local check_function_bodies = off',
    `select set_config('app.tenant_id', ${literal(target.tenantId)}, true), set_config('app.role', 'service_role', true)`,
    ...(missing.length > 0 && applied !== undefined && applied >= firstQualified ? [repairedTo(target, known)] : []),
    ...missing.map(
      (migration) =>
        `${searchPath(homeId, migration.version)};\n${applyMissing({ ...target, schema: homeId }, migration)}`,
    ),
    "set local search_path = ''",
    ...(newest >= firstQualified ? [repairedTo(target, migrations)] : []),
    'commit',
    ...(newest >= firstQualified ? [repairReportSql(homeId)] : []),
  ].join(';\n')
}

function applyMissing(target: MigrationTarget, migration: HomeMigration): string {
  return (
    `do $migrate$ begin\n` +
    `if not exists (select from ${identifier(target.schema)}.home_migrations where version = ${migration.version}) then\n` +
    `execute ${literal(fillTokens(migration.sql, target))};\n` +
    `${recorded(target.schema, migration)};\n` +
    `end if; end $migrate$`
  )
}

/** Makes a pristine home beside the real one, in a schema that nobody else enters, and brings the real one to its structure. */
function repairedTo(
  { homeId, tenantId }: Omit<MigrationTarget, 'schema'>,
  migrations: readonly HomeMigration[],
): string {
  const schema = pristineSchema(homeId)
  return [
    grantDefaultsSql(homeId, 'system', schema),
    firstMigrationsSql({ homeId, schema, tenantId }, migrations),
    repairHomeSql(homeId),
    clearSchemaSql(schema),
  ].join(';\n')
}

/** Empties a schema of which every object is the session's own. */
function clearSchemaSql(schema: string): string {
  return `do $clear$
declare
  r record;
begin
  for r in select relname from pg_class where relnamespace = ${literal(schema)}::regnamespace and relkind = 'r' loop
    execute format('drop table ${identifier(schema)}.%I cascade', r.relname);
  end loop;
  for r in select oid::regprocedure as signature from pg_proc where pronamespace = ${literal(schema)}::regnamespace loop
    execute format('drop function %s cascade', r.signature);
  end loop;
end $clear$`
}
