// The system collections of a home: numbered SQL files of the runtime with a few tokens, and the SQL that migrates a
// home to them and repairs it. Pure except for `loadHomeMigrations`.
import { createHash } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { identifier, literal } from '../platform/identifiers.ts'
import { grantDefaultsSql, type SystemParts } from './home-sql.ts'
import { homeRoles, pristineSchema } from './home-roles.ts'
import { repairHomeSql, repairReportSql } from './repair-home-sql.ts'

/**
 * One migration of the service's tables in a home, in the order of `version`. `sql` may contain the tokens of
 * `migrateHomeSql`.
 */
export interface HomeMigration {
  version: number
  name: string
  sql: string
  /** SQL that creates in an empty schema what this migration and all earlier ones create, with fewer statements. */
  baseline?: string
}

/** The schema in which a migration creates objects, and the tenants to which they belong. */
interface MigrationTarget {
  /** Tenant whose roles are used; the home's schema has its name. */
  homeId: string
  /** Schema in which the objects are created. */
  schema: string
  /** Tenant whose rows the tables accept. It differs from `homeId` only while a backup is restored to a new tenant. */
  tenantId: string
}

/** Returns the target of a tenant's own schema. */
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

const baselineEnd = '.baseline.sql'

/** Reads `NNN_name.sql` files in the order of their numbers, with the baselines `NNN_name.baseline.sql` of some. */
export async function loadHomeMigrations(directory: string): Promise<HomeMigration[]> {
  const files = (await readdir(directory)).filter((file) => file.endsWith('.sql')).sort()
  const read = (file: string) => readFile(join(directory, file), 'utf8')
  return Promise.all(
    files
      .filter((file) => !file.endsWith(baselineEnd))
      .map(async (file) => {
        const match = /^(\d{3})_([a-z0-9_]+)\.sql$/.exec(file)
        if (match === null) throw new Error(`Invalid name "${file}" of a migration. Allowed: NNN_name.sql.`)
        const migration = { version: Number(match[1]), name: match[2] ?? '', sql: await read(file) }
        const baseline = file.replace(/\.sql$/, baselineEnd)
        return files.includes(baseline) ? { ...migration, baseline: await read(baseline) } : migration
      }),
  )
}

function fillTokens(sql: string, target: MigrationTarget): string {
  return sql.replaceAll(/\{\{(\w+)\}\}/g, (_, token: string) => {
    const value = tokens[token]
    if (value === undefined) throw new Error(`A home migration has the unknown token {{${token}}}.`)
    return value(target)
  })
}

/**
 * Returns a hash of all migrations' texts, without baselines, which change no home. It is stored with each tenant and shows
 * which homes must be migrated.
 */
export function migrationsFingerprint(migrations: readonly HomeMigration[]): string {
  const texts = migrations.map(({ version, name, sql }) => ({ version, name, sql }))
  return createHash('sha256').update(JSON.stringify(texts)).digest('hex')
}

/** Version of the first migration that names the schema of every object and runs with an empty search path. */
export const firstQualified = 16

const searchPath = (schema: string, version: number) =>
  `set local search_path = ${version < firstQualified ? identifier(schema) : "''"}`

const createMigrationsTableSql = (schema: string) =>
  `create table ${identifier(schema)}.home_migrations` +
  ' (version integer primary key, name varchar(100) not null, applied_at timestamptz not null default now())'

const recordMigrationsSql = (schema: string, migrations: readonly HomeMigration[]) =>
  `insert into ${identifier(schema)}.home_migrations (version, name) values ` +
  migrations.map(({ version, name }) => `(${version}, ${literal(name)})`).join(', ')

/** A part of a home's structure. It is the same in all homes of a version, because it does not contain the home's ID. */
export interface StructurePart {
  kind: string
  name: string
  definition: string
}

/** Returns SQL that reads the recorded structure of a home, without the ID of its store. */
export const structureSql = (schema: string) =>
  `select kind, name, definition from ${identifier(schema)}.home_structure where kind <> 'store'`

/**
 * Returns SQL that records the structure of a schema that contains only the objects of migrations.
 * @param known the structure, if another home of the server has it; describing the schema takes half the time of its creation
 */
const recordStructureSql = (schema: string, known: readonly StructurePart[] | undefined) =>
  `insert into ${identifier(schema)}.home_structure select * from ` +
  (known === undefined
    ? `${identifier(schema)}.home_structure_of(${literal(schema)}, '{}');\n`
    : `json_to_recordset(${literal(JSON.stringify(known))}) as known (kind text, name text, definition text);\n`) +
  `insert into ${identifier(schema)}.home_structure select 'store', 'id', store_id::text from ${identifier(schema)}.storage_usage`

/**
 * Returns SQL that applies the newest baseline and every migration after it as the system role, in a schema that the same
 * transaction has just created.
 * @param structure the structure of a home with these migrations on the same server, if it is known
 */
export function firstMigrationsSql(
  target: MigrationTarget,
  migrations: readonly HomeMigration[],
  structure?: readonly StructurePart[],
): string {
  const { schema } = target
  const hasStructure = migrations.some(({ version }) => version === firstQualified)
  const fill = (sql: string) => fillTokens(sql, target).replace(/;\s*$/, '')
  const last = migrations.findLastIndex(({ baseline }) => baseline !== undefined)
  const baseline = migrations[last]?.baseline
  return [
    createMigrationsTableSql(schema),
    ...(baseline === undefined ? [] : [fill(baseline)]),
    ...migrations.slice(last + 1).flatMap(({ version, sql }) => [searchPath(schema, version), fill(sql)]),
    recordMigrationsSql(schema, migrations),
    "set local search_path = ''",
    ...(hasStructure ? [recordStructureSql(schema, structure)] : []),
  ].join(';\n')
}

/** Returns the names of the objects that migrations create. It may include objects that a later one drops. */
export function systemParts(migrations: readonly HomeMigration[]): SystemParts {
  const named = (pattern: RegExp) => [
    ...new Set(migrations.flatMap(({ sql }) => [...sql.matchAll(pattern)].map(([, name = '']) => name))),
  ]
  return {
    tables: ['home_migrations', ...named(/^create table (?:\{\{schema\}\}\.)?(\w+)/gm)],
    functions: named(/^create (?:or replace )?function (?:\{\{schema\}\}\.)?(\w+)/gm),
  }
}

/** Table that every home has in which the service's tables belong to the system role. */
export const structureTable = 'home_structure'

/** Tables of every home that describe its structure. Migrations fill them, so that no copy of a home contains their rows. */
export const structureTables: readonly string[] = [structureTable, 'home_migrations']

/** Maximum number of violations that are read of a home, and of characters of each: a tenant may have caused many. */
const maxViolations = 50
const maxViolationLength = 300

/** Returns SQL that lists the first violations of a home, one a row, for any login of the home. */
export function violationsSql(homeId: string): string {
  return (
    `select left(problem, ${maxViolationLength}) as problem from ${identifier(homeId)}.home_problems() as problem` +
    ` limit ${maxViolations}`
  )
}

/**
 * Returns SQL that reads the newest applied version, in one row. @throws SQLSTATE 42P01 if the table of migrations is
 * missing
 */
export function appliedVersionSql(homeId: string): string {
  return `select max(version)::int as version from ${identifier(homeId)}.home_migrations`
}

/**
 * Returns one transaction that repairs the home as of its version, applies every missing migration, and compares the
 * result with a pristine home of the newest version. Its last result is the report of the repair. It runs as the home's
 * system login.
 * @param applied newest applied version; undefined if the table of migrations is missing
 */
export function migrateHomeSql(
  target: Omit<MigrationTarget, 'schema'>,
  migrations: readonly HomeMigration[],
  applied: number | undefined,
): string {
  const { homeId } = target
  const newest = migrations.at(-1)?.version ?? 0
  const missing = applied === undefined ? [] : migrations.filter(({ version }) => version > applied)
  const appliedMigrations = migrations.filter(({ version }) => version <= (applied ?? 0))
  return [
    'begin',
    "set local search_path = ''",
    'set local check_function_bodies = off',
    `select set_config('app.tenant_id', ${literal(target.tenantId)}, true), set_config('app.role', 'service_role', true)`,
    ...(missing.length > 0 && applied !== undefined && applied >= firstQualified
      ? [repairToSql(target, appliedMigrations)]
      : []),
    ...missing.map(
      (migration) =>
        `${searchPath(homeId, migration.version)};\n${applyMissing({ ...target, schema: homeId }, migration)}`,
    ),
    "set local search_path = ''",
    ...(newest >= firstQualified ? [repairToSql(target, migrations)] : []),
    'commit',
    ...(newest >= firstQualified ? [repairReportSql(violationsSql(homeId))] : []),
  ].join(';\n')
}

function applyMissing(target: MigrationTarget, migration: HomeMigration): string {
  return (
    `do $migrate$ begin\n` +
    `if not exists (select from ${identifier(target.schema)}.home_migrations where version = ${migration.version}) then\n` +
    `execute ${literal(fillTokens(migration.sql, target))};\n` +
    `${recordMigrationsSql(target.schema, [migration])};\n` +
    `end if; end $migrate$`
  )
}

/**
 * Returns SQL that creates a pristine home in a schema that only the system role can use, and repairs the real home to
 * its structure.
 */
function repairToSql(
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

/** Returns SQL that empties a schema whose objects all belong to the session. */
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
