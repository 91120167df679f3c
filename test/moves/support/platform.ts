// A platform whose Postgres can move homes, and tenants with every kind of data.
import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import type { Test } from 'tap'
import { everyObjectSql } from '#test/backups/support/every-object.ts'
import { startPlatform, type Platform, type PlatformSettings } from '#test/support/platform.ts'
import { query } from '#test/support/postgres.ts'
import { until } from '#test/support/until.ts'

/** A pause between two polls, which leaves the machine to the move. */
const pollMilliseconds = 100

/** The databases between which the tests move homes. */
export const [first, second] = ['tenantry_homes_1', 'tenantry_homes_2'] as const

/** The part of a platform that its tenants' users need, and the operators who request moves. */
export type ServedPlatform = Pick<Platform, 'call' | 'tenantCall' | 'gatewayUrl'>

export interface Owner {
  id: string
  name: string
  key: string
  url: string
}

export async function startMovePlatform(t: Test, settings: PlatformSettings = {}): Promise<Platform> {
  const platform = await startPlatform({
    ...settings,
    // A busy machine may need longer than the default for what a hold does.
    control: { TENANTRY_MOVE_HOLD_MILLISECONDS: '30000', TENANTRY_MOVE_REVERSE_SECONDS: '0', ...settings.control },
    postgres: { wal_level: 'logical', max_slot_wal_keep_size: '1GB', ...settings.postgres },
  })
  t.teardown(() => platform.stop())
  return platform
}

export async function createOwner(platform: ServedPlatform, name: string): Promise<Owner> {
  const { body } = await platform.call(
    'POST',
    '/v1/tenants',
    { name, plan: 'Free', region: 'local' },
    { prefer: 'wait=30' },
  )
  if (body['status'] !== 'ready') throw new Error(JSON.stringify(body))
  return {
    id: String(body['tenant_id']),
    name,
    key: String((body['keys'] as Record<string, unknown>)['secret_key']),
    url: String(body['database_url']),
  }
}

/** Runs SQL in a session of the tenant's own login. */
export async function sql(url: string, text: string, values: unknown[] = []): Promise<Record<string, unknown>[]> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    return (await client.query<Record<string, unknown>>(text, values)).rows
  } finally {
    await client.end()
  }
}

export async function request(platform: ServedPlatform, owner: Owner, method: string, path: string, body?: unknown) {
  const response = await platform.tenantCall(owner.name, method, path, {
    key: owner.key,
    ...(body === undefined ? {} : { body: JSON.stringify(body), type: 'application/json' }),
  })
  return { status: response.status, text: await response.text() }
}

const notes = {
  name: 'notes',
  fields: [
    { name: 'id', type: 'uuid', primary: true },
    { name: 'text', type: 'string', required: true },
  ],
  rls_policy: { type: 'service' },
  events: true,
}

/** Gives the tenant a schema with its REST interface, every kind of object of SQL, and a table without a key. */
export async function fill(platform: ServedPlatform, owner: Owner): Promise<void> {
  for (const [path, body] of [
    ['/rest/v1/schemas', notes],
    ['/admin/reload-schemas', {}],
    ['/rest/v1/notes', { id: randomUUID(), text: 'first' }],
  ] as const) {
    const { status, text } = await request(platform, owner, 'POST', path, body)
    if (status >= 300) throw new Error(`${path}: ${status} ${text}`)
  }
  await sql(owner.url, everyObjectSql)
  await sql(
    owner.url,
    `create table keyless (n int, doc json, padded char(5), amount float8);
     insert into keyless select i % 10, json_build_object('i', i % 10), 'x', i % 10 / 3.0 from generate_series(1, 40) i;
     create table large (id int primary key, body text);
     insert into large values (1, repeat('0123456789abcdef', 200000))`,
  )
}

/** Returns the name of the database in which the tenant's home is. */
export async function databaseOf(platform: ServedPlatform, { id }: Pick<Owner, 'id'>): Promise<string> {
  const { body } = await platform.call('GET', `/v1/tenants/${id}`)
  return new URL(String(body['database_url'])).pathname.slice(1)
}

/** Requests a move, and waits until its operation has ended. */
export async function move(platform: ServedPlatform, owner: Owner, database: string) {
  const { status, body } = await platform.call('POST', `/v1/tenants/${owner.id}/move`, { database })
  if (status !== 202) throw new Error(JSON.stringify(body))
  return ended(platform, String((body['operation'] as Record<string, unknown>)['id']))
}

/** Requests the revert of the last move, and waits until its operation has ended. */
export async function revert(platform: ServedPlatform, owner: Owner) {
  return ended(platform, await beginRevert(platform, owner))
}

/** Requests the revert of the last move. @returns the ID of the operation */
export async function beginRevert(platform: ServedPlatform, { id }: Owner): Promise<string> {
  const { status, body } = await platform.call('POST', `/v1/tenants/${id}/move/revert`)
  if (status !== 202) throw new Error(JSON.stringify(body))
  return String((body['operation'] as Record<string, unknown>)['id'])
}

/** Waits until the move of an operation cannot be reverted any more, and nothing of it is left. @returns the reason */
export async function reverseEnded(platform: Platform, owner: Owner, operation: string, left: string) {
  let reason: unknown
  await until(async () => {
    const { body } = await platform.call('GET', `/v1/operations/${operation}`)
    reason = (body['move'] as Record<string, unknown> | undefined)?.['not_revertible_reason']
    return reason != null && (await remains(platform, owner, left)).length === 0
  }, 'the end of the reverse')
  return reason
}

export async function ended(
  platform: ServedPlatform,
  operationId: string,
  milliseconds?: number,
): Promise<Record<string, unknown>> {
  let operation: Record<string, unknown> = {}
  await until(
    async () => {
      operation = (await platform.call('GET', `/v1/operations/${operationId}`).catch(() => ({ body: {} }))).body
      if (operation['finished'] != null) return true
      await sleep(pollMilliseconds)
      return false
    },
    `the end of the operation ${operationId}`,
    milliseconds,
  )
  return operation
}

/** Returns the count and a hash of the rows of each table of a home, and the position of each sequence. */
export async function contentOf(platform: Platform, database: string, { id }: Owner): Promise<string[]> {
  const url = platform.postgres.url(database)
  const tables = await query(
    url,
    `select c.relname as name, c.relkind as kind from pg_class c where relnamespace = to_regnamespace($1) and relkind in ('r', 'S')
       and relname not in ('function_dispatcher', 'home_migrations') order by 1`,
    [id],
  )
  const lines: string[] = []
  for (const { name, kind } of tables) {
    const from = `"${id}"."${String(name)}"`
    const [row] = await query(
      url,
      kind === 'S'
        ? `select last_value || ' ' || is_called as content from ${from}`
        : `select count(*) || ' ' || coalesce(md5(string_agg(line, ',' order by line)), '') as content
           from (select md5(format('%s', t)) as line from ${from} t) rows`,
    )
    lines.push(`${String(name)}: ${String(row?.['content'])}`)
  }
  return lines
}

/** Returns what a move creates on the server and must not leave. */
export async function remains(platform: Platform, { id }: Owner, other: string): Promise<string[]> {
  const server = platform.postgres.url('postgres')
  const found = [
    ...(await query(server, 'select slot_name as name from pg_replication_slots')),
    ...(await query(server, "select rolname as name from pg_roles where rolname ~ '^tenantry_(move|loader|reader)'")),
  ]
  const databases = await query(server, "select datname as name from pg_database where datname ~ '^tenantry_homes_'")
  for (const { name } of databases) {
    const url = platform.postgres.url(String(name))
    found.push(...(await query(url, 'select pubname as name from pg_publication')))
    found.push(
      ...(await query(
        url,
        `select relname || ' is full' as name from pg_class where relreplident = 'f' and relnamespace::regnamespace::text ~ '^"?t_'`,
      )),
    )
    found.push(
      ...(await query(url, 'select nspname as name from pg_namespace where nspname ~ $1', [
        name === other ? `^${id}` : `^${id}_`,
      ])),
    )
  }
  return found.map(({ name }) => String(name))
}
