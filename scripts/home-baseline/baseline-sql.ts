// Describes a home that its migrations have created as one SQL file, which creates the same home with fewer statements.
import pg from 'pg'
import { homeRoles } from '#control-plane/homes/home-roles.ts'

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

/** The parts of one tenant's name that are tokens in migrations. */
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
  return text
    .replaceAll(new RegExp(`"?\\b${owner}\\b"?`, 'g'), '{{owner}}')
    .replaceAll(new RegExp(`"?\\b${ddl}\\b"?`, 'g'), '{{ddl}}')
    .replaceAll(new RegExp(`'${tenantId}'(?:::text)?`, 'g'), '{{tenant_id}}')
    .replaceAll(new RegExp(`"?\\b${tenantId}\\b"?\\.`, 'g'), '{{schema}}.')
    .replaceAll(new RegExp(`"?\\b${tenantId}\\b"?`, 'g'), '{{runtime}}')
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
  const add = (statement: (names: string) => string, relation: string) => {
    const key = statement('#')
    relations.set(key, [...(relations.get(key) ?? []), `{{schema}}.${relation}`])
  }
  for (const { relation, column, grantee, privileges: found } of rows) {
    const on = (names: readonly string[]) =>
      names.map((name) => (column === null ? name : `${name} (${column})`).toLowerCase()).join(', ')
    const isTable = grantee === runtime && column === null
    const revoked = isTable ? runtimeDefault.filter((name) => !found.includes(name)) : []
    const granted = isTable ? found.filter((name) => !runtimeDefault.includes(name)) : found
    if (grantee === system) continue
    if (revoked.length > 0) add((names) => `revoke ${on(revoked)} on ${names} from ${grantee}`, relation)
    if (granted.length > 0) add((names) => `grant ${on(granted)} on ${names} to ${grantee}`, relation)
  }
  return [...relations].map(([statement, names]) => `${statement.replace('#', names.join(', '))};`)
}

async function rejectUndescribed(client: pg.Client, tenantId: string): Promise<void> {
  const { rows } = await client.query<{ what: string }>(undescribedSql, [tenantId])
  if (rows.length > 0) throw new Error(`The baseline cannot describe: ${rows.map(({ what }) => what).join(', ')}`)
}

/** The condition of the home's tables, `c`. */
const isOfHome = `c.relnamespace = $1::regnamespace and c.relkind = 'r'`

const tablesSql = `
  select c.relname as name, array_to_string(c.reloptions, ', ') as options,
    array(select concat_ws(' ', quote_ident(a.attname), format_type(a.atttypid, a.atttypmod),
        case when a.attstorage <> y.typstorage then 'storage ' ||
          case a.attstorage when 'e' then 'external' when 'm' then 'main' when 'p' then 'plain' else 'extended' end end,
        case when a.attcollation <> y.typcollation then
          'collate ' || (select quote_ident(collname) from pg_collation where oid = a.attcollation) end,
        case when a.attnotnull then 'not null' end,
        case when a.attidentity = 'a' then 'generated always as identity'
          when a.attgenerated = 's' then 'generated always as (' || pg_get_expr(d.adbin, d.adrelid) || ') stored'
          when d.adbin is not null then 'default ' || pg_get_expr(d.adbin, d.adrelid) end)
      from pg_attribute a join pg_type y on y.oid = a.atttypid
        left join pg_attrdef d on d.adrelid = a.attrelid and d.adnum = a.attnum
      where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped order by a.attnum) as columns,
    array(select format('constraint %I %s', n.conname, pg_get_constraintdef(n.oid)) from pg_constraint n
      where n.conrelid = c.oid and n.contype in ('c', 'p', 'u', 'f')
      order by array_position('{c,p,u,f}'::"char"[], n.contype), n.oid) as constraints
  from pg_class c where ${isOfHome} and c.relname <> $2 order by c.oid`

const indexesSql = `
  select pg_get_indexdef(i.indexrelid) as statement from pg_index i join pg_class c on c.oid = i.indrelid where ${isOfHome}
    and not exists (select from pg_constraint n where n.conindid = i.indexrelid and n.contype in ('p', 'u')) order by i.indexrelid`

const functionsSql = `
  select rtrim(pg_get_functiondef(p.oid), E'\\n') as statement from pg_proc p where p.pronamespace = $1::regnamespace order by p.oid`

const triggersSql = `
  select pg_get_triggerdef(g.oid) as statement from pg_trigger g join pg_class c on c.oid = g.tgrelid where ${isOfHome}
    and not g.tgisinternal order by g.oid`

const rowSecuritySql = `
  select format('alter table {{schema}}.%I enable row level security, force row level security', c.relname) as statement
  from pg_class c where ${isOfHome} and c.relrowsecurity and c.relforcerowsecurity order by c.oid`

const policiesSql = `
  select format('create policy %I on {{schema}}.%I%s for %s', p.polname, c.relname,
      case when not p.polpermissive then ' as restrictive' end,
      case p.polcmd when 'r' then 'select' when 'a' then 'insert' when 'w' then 'update' when 'd' then 'delete' else 'all' end)
    || coalesce(' using (' || pg_get_expr(p.polqual, p.polrelid) || ')', '')
    || coalesce(' with check (' || pg_get_expr(p.polwithcheck, p.polrelid) || ')', '') as statement
  from pg_policy p join pg_class c on c.oid = p.polrelid where ${isOfHome} order by p.oid`

const privilegesSql = `
  select relation, column_name as "column", grantee, array_agg(privilege order by privilege) as privileges from (
    select c.oid, 0 as number, c.relname as relation, null as column_name,
      e.grantee::regrole::text as grantee, e.privilege_type as privilege
    from pg_class c, aclexplode(coalesce(c.relacl, acldefault('r', c.relowner))) e
    where ${isOfHome}
    union all
    select c.oid, a.attnum, c.relname, quote_ident(a.attname), e.grantee::regrole::text, e.privilege_type
    from pg_class c join pg_attribute a on a.attrelid = c.oid, aclexplode(a.attacl) e
    where ${isOfHome} and a.attacl is not null
  ) as found group by oid, number, relation, column_name, grantee order by oid, number, grantee`

const undescribedSql = `
  select format('%s %s', c.relkind, c.relname) as what from pg_class c
    where c.relnamespace = $1::regnamespace and (c.relkind not in ('r', 'i', 'S') or c.relrowsecurity <> c.relforcerowsecurity)
  union all select format('the privileges of %s', p.proname) from pg_proc p where p.pronamespace = $1::regnamespace and p.proacl is not null
  union all select format('the routine %s', p.proname) from pg_proc p where p.pronamespace = $1::regnamespace and p.prokind <> 'f'
  union all select format('the policy %s', p.polname) from pg_policy p join pg_class c on c.oid = p.polrelid
    where c.relnamespace = $1::regnamespace and p.polroles <> '{0}'
  union all select format('the type %s', y.typname) from pg_type y
    where y.typnamespace = $1::regnamespace and y.typrelid = 0 and y.typelem = 0
  union all select format('the trigger %s', g.tgname) from pg_trigger g join pg_class c on c.oid = g.tgrelid
    where c.relnamespace = $1::regnamespace and not g.tgisinternal and g.tgenabled <> 'O'
  union all select format('a comment on %s', d.objoid) from pg_description d join pg_class c on c.oid = d.objoid
    where d.classoid = 'pg_class'::regclass and c.relnamespace = $1::regnamespace`
