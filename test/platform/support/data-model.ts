// Reads the tables of the control database in one format from two sources: prisma/schema.prisma, and Postgres' catalog.
import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { query } from '#test/support/postgres.ts'

export interface Table {
  /** Each column's type, whether it is `not null`, and its default, as Postgres prints them. */
  columns: Record<string, { type: string; required: boolean; default: string | null }>
  indexes: Record<string, { kind: 'primary' | 'unique' | 'normal'; columns: string[] }>
  foreignKeys: Record<
    string,
    { columns: string[]; table: string; references: string[]; onDelete: string; onUpdate: string }
  >
}

interface Field {
  name: string
  dbName?: string
  kind: 'scalar' | 'object' | 'enum' | 'unsupported'
  type: string
  isList: boolean
  isRequired: boolean
  nativeType: [string, string[]] | null
  default?: string | number | boolean | { name: string }
  relationFromFields?: string[]
  relationToFields?: string[]
  relationOnDelete?: string
  relationOnUpdate?: string
}

interface DataModel {
  enums: unknown[]
  models: { name: string; dbName: string | null; fields: Field[] }[]
  indexes: {
    model: string
    type: 'id' | 'unique' | 'normal' | 'fulltext'
    dbName?: string
    fields: { name: string }[]
  }[]
}

const schemaFile = new URL('../../../prisma/schema.prisma', import.meta.url).pathname
const generator = new URL('dmmf-generator.ts', import.meta.url).pathname

async function readDataModel(): Promise<DataModel> {
  const directory = await mkdtemp(join(tmpdir(), 'tenantry-data-model-'))
  try {
    const output = join(directory, 'datamodel.json')
    const block = `generator datamodel {\n  provider = ${JSON.stringify(`${process.execPath} ${generator} ${output}`)}\n}\n`
    await writeFile(join(directory, 'schema.prisma'), `${await readFile(schemaFile, 'utf8')}\n${block}`)
    const command = createRequire(import.meta.url).resolve('prisma/build/index.js')
    await promisify(execFile)(
      process.execPath,
      [command, 'generate', '--generator', 'datamodel', '--schema', join(directory, 'schema.prisma')],
      {
        cwd: directory,
        // Reading a schema does not need Prisma's schema engine. Setting its path to another program prevents its download.
        env: {
          ...process.env,
          PRISMA_SCHEMA_ENGINE_BINARY: process.execPath,
          PRISMA_HIDE_UPDATE_MESSAGE: '1',
          CHECKPOINT_DISABLE: '1',
        },
      },
    )
    return JSON.parse(await readFile(output, 'utf8')) as DataModel
  } finally {
    await rm(directory, { recursive: true, force: true })
  }
}

const plainTypes: Record<string, string> = {
  String: 'text',
  Int: 'integer',
  BigInt: 'bigint',
  Boolean: 'boolean',
  Json: 'jsonb',
  Bytes: 'bytea',
}

/** @throws Error for a type that this test cannot compare, so that no difference stays hidden */
function postgresType({ name, type, nativeType, isList, kind }: Field): string {
  const plain = plainTypes[type]
  if (!isList && kind === 'scalar') {
    if (nativeType === null && plain !== undefined) return plain
    if (nativeType?.[0] === 'Uuid') return 'uuid'
    if (nativeType?.[0] === 'Date') return 'date'
    if (nativeType?.[0] === 'Timestamptz') return `timestamp(${nativeType[1][0] ?? ''}) with time zone`
  }
  throw new Error(`field "${name}" has a type that this test does not support`)
}

function postgresDefault(table: string, column: string, { name, type, default: value }: Field): string | null {
  if (value === undefined) return null
  if (typeof value === 'object') {
    if (value.name === 'now') return 'CURRENT_TIMESTAMP'
    if (value.name === 'autoincrement') return `nextval('${table}_${column}_seq'::regclass)`
    throw new Error(`field "${name}" has a default that this test does not support`)
  }
  if (type === 'Int' || type === 'BigInt' || type === 'Boolean') return String(value)
  return `'${String(value)}'::${plainTypes[type] ?? ''}`
}

/** Returns the tables that `prisma migrate` would create from the schema. */
export async function tablesOfSchema(): Promise<Record<string, Table>> {
  const { enums, models, indexes } = await readDataModel()
  if (enums.length > 0) throw new Error('this test does not support enums')
  const tableOf = (modelName: string) => models.find(({ name }) => name === modelName)?.dbName ?? modelName
  const columnOf = (modelName: string, fieldName: string) =>
    models.find(({ name }) => name === modelName)?.fields.find(({ name }) => name === fieldName)?.dbName ?? fieldName
  return Object.fromEntries(
    models.map((model) => {
      const table = tableOf(model.name)
      const columns = (names: string[] = []) => names.map((name) => columnOf(model.name, name))
      const keys = model.fields.filter(({ relationFromFields = [] }) => relationFromFields.length > 0)
      const suffix = { id: 'pkey', unique: 'key', normal: 'idx', fulltext: 'idx' }
      const kind = { id: 'primary', unique: 'unique', normal: 'normal', fulltext: 'normal' } as const
      const shape: Table = {
        columns: Object.fromEntries(
          model.fields
            .filter(({ kind }) => kind !== 'object')
            .map((field) => {
              const column = columnOf(model.name, field.name)
              return [
                column,
                {
                  type: postgresType(field),
                  required: field.isRequired,
                  default: postgresDefault(table, column, field),
                },
              ]
            }),
        ),
        indexes: Object.fromEntries(
          indexes
            .filter((index) => index.model === model.name)
            .map((index) => {
              const named = columns(index.fields.map(({ name }) => name))
              const name = index.dbName ?? [table, ...(index.type === 'id' ? [] : named), suffix[index.type]].join('_')
              return [name, { kind: kind[index.type], columns: named }]
            }),
        ),
        foreignKeys: Object.fromEntries(
          keys.map((field) => {
            const named = columns(field.relationFromFields)
            return [
              [table, ...named, 'fkey'].join('_'),
              {
                columns: named,
                table: tableOf(field.type),
                references: (field.relationToFields ?? []).map((name) => columnOf(field.type, name)),
                onDelete: field.relationOnDelete ?? (field.isRequired ? 'Restrict' : 'SetNull'),
                onUpdate: field.relationOnUpdate ?? 'Cascade',
              },
            ]
          }),
        ),
      }
      return [table, shape]
    }),
  )
}

const columnNames = (table: string, numbers: string) =>
  `(select array_agg(attname::text order by position) from unnest(${numbers}) with ordinality as n(number, position)
    join pg_attribute on attrelid = ${table} and attnum = n.number)`

/** Returns all tables of the database's schema `public`, except the table of migrations. */
export async function tablesOfDatabase(url: string): Promise<Record<string, Table>> {
  const shapes: Record<string, Table> = {}
  const ours = "relnamespace = 'public'::regnamespace and relname <> '_prisma_migrations'"
  const tableNames = await query(
    url,
    `select relname::text from pg_class where relkind in ('r', 'p', 'v', 'm') and ${ours}`,
  )
  for (const { relname } of tableNames) shapes[String(relname)] = { columns: {}, indexes: {}, foreignKeys: {} }
  const columns = await query(
    url,
    `
    select relname::text, attname::text, format_type(atttypid, atttypmod) as type,
    attnotnull as required, pg_get_expr(adbin, adrelid) as "default"
    from pg_attribute join pg_class on pg_class.oid = attrelid left join pg_attrdef on adrelid = attrelid and adnum = attnum
    where relkind in ('r', 'p', 'v', 'm') and attnum > 0 and not attisdropped and ${ours}`,
  )
  for (const { relname, attname, ...column } of columns) {
    const shape = shapes[String(relname)]
    if (shape !== undefined) shape.columns[String(attname)] = column as Table['columns'][string]
  }
  // The Prisma schema cannot describe an index whose condition uses a JSON path, or tests for null.
  const indexes = await query(
    url,
    `
    select pg_class.relname::text, i.relname::text as name, ${columnNames('indrelid', 'indkey::smallint[]')} as columns,
      case when indisprimary then 'primary' when indisunique then 'unique' else 'normal' end as kind
    from pg_index join pg_class on pg_class.oid = indrelid join pg_class i on i.oid = indexrelid
    where pg_class.relnamespace = 'public'::regnamespace and pg_class.relname <> '_prisma_migrations'
      and i.relname not in ('tenants_attention_idx', 'tenants_proven_at_idx')`,
  )
  for (const { relname, name, ...index } of indexes) {
    const shape = shapes[String(relname)]
    if (shape !== undefined) shape.indexes[String(name)] = index as unknown as Table['indexes'][string]
  }
  const action = (column: string) =>
    `case ${column} when 'a' then 'NoAction' when 'r' then 'Restrict' when 'c' then 'Cascade' when 'n' then 'SetNull' else 'SetDefault' end`
  const keys = await query(
    url,
    `
    select pg_class.relname::text, conname::text as name, ${columnNames('conrelid', 'conkey')} as columns, target.relname::text as table,
      ${columnNames('confrelid', 'confkey')} as references, ${action('confdeltype')} as "onDelete", ${action('confupdtype')} as "onUpdate"
    from pg_constraint join pg_class on pg_class.oid = conrelid join pg_class target on target.oid = confrelid
    where contype = 'f' and pg_class.relnamespace = 'public'::regnamespace`,
  )
  for (const { relname, name, ...key } of keys) {
    const shape = shapes[String(relname)]
    if (shape !== undefined) shape.foreignKeys[String(name)] = key as unknown as Table['foreignKeys'][string]
  }
  return shapes
}
