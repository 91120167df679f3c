// Describes a home that its migrations have created as one SQL file, which creates the same home with fewer statements.
import pg from 'pg'
import { homeRoles } from '#control-plane/homes/home-roles.ts'
import {
  functionsSql,
  indexesSql,
  policiesSql,
  privilegesSql,
  rowSecuritySql,
  tablesSql,
  triggersSql,
  undescribedSql,
} from './catalog-queries.ts'

/** Inserts the rows of a new home, before it has triggers and policies. */
const firstRows = [
  'insert into {{schema}}.storage_usage default values;',
  "insert into {{schema}}.storage_buckets (name, policy) values ('system', 'private');",
  'insert into {{schema}}.storage_bucket_counters (bucket_id) select id from {{schema}}.storage_buckets;',
  'insert into {{schema}}.event_log_gone default values;',
]

/** The table that the control plane creates itself. */
const ownTable = 'home_migrations'

/** Privileges that the runtime has on each new table, by default privileges. */
const runtimeDefault = ['DELETE', 'INSERT', 'SELECT', 'UPDATE']

/**
 * Returns SQL with the tokens of migrations, which creates the tables and functions of a home in an empty schema.
 * @param url a superuser's URL of the home's database
 * @throws Error if the home has something that this program does not describe
 */
export async function baselineSql(url: string, tenantId: string): Promise<string> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    // Postgres names the schema of each object then.
    await client.query("set search_path = ''")
    return await describe(client, tenantId)
  } finally {
    await client.end()
  }
}

async function describe(client: pg.Client, tenantId: string): Promise<string> {
  await rejectUndescribed(client, tenantId)
  const parts: [string, string[]][] = [
    ['Tables', await tables(client, tenantId)],
    ['Indexes', await list(client, indexesSql, tenantId)],
    ['First rows', firstRows],
    ['Functions', await list(client, functionsSql, tenantId)],
    ['Triggers', await list(client, triggersSql, tenantId)],
    ['Privileges', await privileges(client, tenantId)],
    ['Policies', [...(await list(client, rowSecuritySql, tenantId)), ...(await list(client, policiesSql, tenantId))]],
  ]
  const text = [
    '-- The structure of a home after all migrations up to this number, for new homes. Written by `npm run update:baseline`.',
    'set local check_function_bodies = off;',
    "select set_config('app.tenant_id', {{tenant_id}}, true), set_config('app.role', 'service_role', true);",
    ...parts.flatMap(([title, statements]) => [
      '',
      `-- ${title}`,
      ...statements.map((one) => withTokens(one, tenantId)),
    ]),
  ]
  return `${text.join('\n')}\n`
}

/**
 * Replaces the names of one tenant, and the expressions for its context, by the tokens of migrations.
 * @throws Error for a name without a dot that may be that of the schema or that of the runtime's role
 */
function withTokens(sql: string, tenantId: string): string {
  const { owner, ddl } = homeRoles(tenantId)
  let text = sql
  for (const [name, token] of [
    ['app.tenant_id', '{{tenant}}'],
    ['app.role', '{{role}}'],
    ['app.user_id', '{{user_id}}'],
  ] as const) {
    text = text
      .replaceAll(`( SELECT NULLIF(current_setting('${name}'::text, true), ''::text) AS "nullif")`, token)
      .replaceAll(`(select nullif(current_setting('${name}', true), ''))`, token)
  }
  text = text
    .replaceAll(new RegExp(`"?\\b${owner}\\b"?`, 'g'), '{{owner}}')
    .replaceAll(new RegExp(`"?\\b${ddl}\\b"?`, 'g'), '{{ddl}}')
    .replaceAll(new RegExp(`'${tenantId}'(?:::text)?`, 'g'), '{{tenant_id}}')
    .replaceAll(new RegExp(`"?\\b${tenantId}\\b"?\\.`, 'g'), '{{schema}}.')
  if (text.includes(tenantId)) throw new Error(`The baseline cannot replace the tenant's name in: ${text}`)
  return text
}

async function list(client: pg.Client, sql: string, tenantId: string): Promise<string[]> {
  return (await client.query<{ statement: string }>(sql, [tenantId])).rows.map(({ statement }) => `${statement};`)
}

async function tables(client: pg.Client, tenantId: string): Promise<string[]> {
  const { rows } = await client.query<{
    name: string
    options: string | null
    columns: string[]
    constraints: string[]
  }>(tablesSql, [tenantId, ownTable])
  return rows.map(({ name, options, columns, constraints }) => {
    const storage = options === null ? '' : ` with (${options})`
    return `create table {{schema}}.${name} (\n  ${[...columns, ...constraints].join(',\n  ')}\n)${storage};`
  })
}

interface Privilege {
  relation: string
  column: string | null
  grantee: string
  privileges: string[]
}

/** Returns the differences from the default privileges, one statement for all tables that share one. */
async function privileges(client: pg.Client, tenantId: string): Promise<string[]> {
  const { rows } = await client.query<Privilege>(privilegesSql, [tenantId])
  const { runtime, system } = homeRoles(tenantId)
  const relations = new Map<string, string[]>()
  const add = (statement: string, relation: string) =>
    relations.set(statement, [...(relations.get(statement) ?? []), `{{schema}}.${relation}`])
  for (const { relation, column, grantee, privileges: found } of rows) {
    const on = (names: readonly string[]) =>
      names.map((name) => name.toLowerCase() + (column === null ? '' : ` (${column})`)).join(', ')
    const isTable = grantee === runtime && column === null
    const revoked = isTable ? runtimeDefault.filter((name) => !found.includes(name)) : []
    const granted = isTable ? found.filter((name) => !runtimeDefault.includes(name)) : found
    if (grantee === system) continue
    const role = grantee === runtime ? '{{runtime}}' : grantee
    if (revoked.length > 0) add(`revoke ${on(revoked)} on # from ${role}`, relation)
    if (granted.length > 0) add(`grant ${on(granted)} on # to ${role}`, relation)
  }
  return [...relations].map(([statement, names]) => `${statement.replace('#', names.join(', '))};`)
}

async function rejectUndescribed(client: pg.Client, tenantId: string): Promise<void> {
  const { rows } = await client.query<{ what: string }>(undescribedSql, [tenantId])
  if (rows.length > 0) throw new Error(`The baseline cannot describe: ${rows.map(({ what }) => what).join(', ')}`)
}
