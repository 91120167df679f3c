// Creates tenants whose homes contain every kind of data, and reads their content as their users do.
import { createHash, randomBytes } from 'node:crypto'
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Test } from 'tap'
import {
  startDockerPlatform,
  type ApiResponse,
  type DockerPlatform,
  type DockerPlatformOptions,
} from '#test/support/docker-platform.ts'
import { query } from '#test/support/postgres.ts'
import { until } from '#test/support/until.ts'

export interface BackupPlatform extends DockerPlatform {
  /** The installation's directory, with one directory for each backup. */
  directory: string
}

export async function startBackupPlatform(t: Test, options: DockerPlatformOptions = {}): Promise<BackupPlatform> {
  const directory = await mkdtemp(join(tmpdir(), 'tenantry-backups-'))
  const platform = await startDockerPlatform({
    ...options,
    environment: { TENANTRY_BACKUPS: directory, ...options.environment },
  })
  t.teardown(async () => {
    await platform.stop()
    await rm(directory, { recursive: true, force: true })
  })
  return { ...platform, directory: join(directory, platform.installation) }
}

export interface Owner {
  id: string
  name: string
  key: string
  publishable: string
  url: string
}

export function toOwner(body: Record<string, unknown>): Owner {
  const keys = body['keys'] as Record<string, string>
  return {
    id: String(body['tenant_id']),
    name: String(body['name']),
    url: String(body['database_url']),
    key: keys['secret_key'] ?? '',
    publishable: keys['publishable_key'] ?? '',
  }
}

export async function createOwner(
  platform: DockerPlatform,
  name: string,
  isolation = 'database-per-tenant',
): Promise<Owner> {
  const created = await platform.call(
    'POST',
    '/v1/tenants',
    { name, plan: 'Pro', region: 'local', isolation },
    { prefer: 'wait=60' },
  )
  const owner = toOwner(created.body)
  await platform.until(owner.id, ({ status }) => status === 'ready', 180)
  return owner
}

/** Waits until the operation in a response has ended, and returns it. */
export async function ended(
  platform: DockerPlatform,
  response: ApiResponse,
  seconds = 120,
): Promise<Record<string, unknown>> {
  if (response.status !== 202) throw new Error(`response ${response.status}: ${JSON.stringify(response.body)}`)
  const { id } = response.body['operation'] as { id: string }
  const deadline = Date.now() + seconds * 1000
  for (;;) {
    const { body } = await platform.call('GET', `/v1/operations/${id}`).catch(() => ({ body: { finished: null } }))
    if (body['finished'] !== undefined && body['finished'] !== null) return body
    if (Date.now() > deadline) throw new Error(`not in ${seconds} s: ${JSON.stringify(body)}`)
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}

/** Text that occurs in rows and files, and must not occur in a backup. */
export const canary = `canary-${randomBytes(12).toString('hex')}`

/** Adds collections, rows, SQL objects of every kind and files to the tenant's home. */
export async function furnish(platform: DockerPlatform, { name, key, url }: Owner, largeBytes: number): Promise<void> {
  await json(platform, name, key, 'POST', '/rest/v1/schemas', {
    name: 'notes',
    fields: [
      { name: 'id', type: 'uuid', primary: true },
      { name: 'owner', type: 'string' },
      { name: 'title', type: 'string', required: true },
    ],
    rls_policy: { type: 'ownership', owner_field: 'owner' },
  })
  await json(platform, name, key, 'POST', '/admin/reload-schemas', {})
  for (const title of [canary, 'second', 'ünï\tcode \\ "quoted" \n line']) {
    const body = JSON.stringify({ owner: 'u1', title })
    const insert = () => platform.tenantCall(name, 'POST', '/rest/v1/notes', { key, body, type: 'application/json' })
    let response = await insert()
    // The second runtime of a cluster learns of the reload within half a second.
    await until(async () => response.status !== 404 || (response = await insert()).status !== 404, 'the collection')
    if (!response.ok) throw new Error(`The record was not inserted: ${response.status} ${await response.text()}`)
  }
  await query(url, customSql)
  await json(platform, name, key, 'POST', '/storage/v1/bucket', { name: 'papers', policy: 'private' })
  await put(platform, name, key, 'papers/letter.txt', canary)
  await put(platform, name, key, 'papers/empty.bin', '')
  await put(platform, name, key, 'papers/large.bin', largeContent(largeBytes))
}

const customSql = `
create type mood as enum ('fine', 'grim');
create domain short as text check (length(value) < 100);
create sequence tickets start 41 increment 7;
create table "Odd ""names""" (
  id bigint generated always as identity primary key, "a b" short not null default 'x',
  doubled bigint generated always as (amount * 2) stored,
  amount bigint not null check (amount >= 0), how mood, body jsonb, raw bytea, at timestamptz, ratio double precision, tags text[]
);
create function next_ticket() returns bigint language sql as $$ select nextval('tickets') $$;
create function stamp() returns trigger language plpgsql as $$ begin new.at := '2020-02-02 02:02:02+00'; return new; end $$;
create trigger stamped before insert on "Odd ""names""" for each row execute function stamp();
create index by_amount on "Odd ""names""" (amount) where amount > 10;
alter table "Odd ""names""" enable row level security;
create policy fine_only on "Odd ""names""" for select using (how = 'fine');
create view totals as select how, sum(amount) as amount from "Odd ""names""" group by how;
create materialized view stored_totals as select count(*) as rows from "Odd ""names""";
create table children (id bigint primary key, parent bigint not null references "Odd ""names""" on delete cascade);
insert into "Odd ""names""" (amount, how, body, raw, ratio, tags)
  select n, case when n % 2 = 0 then 'fine' else 'grim' end::mood, jsonb_build_object('n', n),
    decode(md5(n::text), 'hex'), n / 3.0::double precision, array['t' || n, null, 'a,b']
  from generate_series(1, 500) as n;
insert into children select n, n from generate_series(1, 100) as n;
select next_ticket(), next_ticket();
refresh materialized view stored_totals;
`

export function largeContent(bytes: number): Buffer {
  const block = createHash('sha512').update('large').digest()
  return Buffer.alloc(bytes, block)
}

/** Returns the content that a tenant's users see. Two results are equal when nothing was lost. */
export async function seen(platform: DockerPlatform, { name, key, url }: Owner): Promise<Record<string, unknown>> {
  const get = async (path: string) => {
    const response = await platform.tenantCall(name, 'GET', path, { key })
    return {
      status: response.status,
      sha256: createHash('sha256')
        .update(Buffer.from(await response.arrayBuffer()))
        .digest('hex'),
    }
  }
  const notes = await (
    await platform.tenantCall(name, 'GET', '/rest/v1/notes?select=id,owner,title&order=id', { key })
  ).json()
  return {
    notes,
    letter: await get('/storage/v1/object/papers/letter.txt'),
    empty: await get('/storage/v1/object/papers/empty.bin'),
    large: await get('/storage/v1/object/papers/large.bin'),
    odd: await query(
      url,
      `select count(*) as rows, md5(string_agg(t::text, '|' order by id)) as content from "Odd ""names""" as t`,
    ),
    children: await query(url, 'select count(*) from children'),
    sequence: await query(url, 'select last_value, is_called from tickets'),
    totals: await query(url, 'select * from totals order by how'),
    materialized: await query(url, 'select * from stored_totals'),
    policies: await query(
      url,
      'select tablename, policyname, permissive, cmd from pg_policies where schemaname = current_schema() order by 1, 2',
    ),
    triggers: await query(
      url,
      `select c.relname, tgname from pg_trigger g join pg_class c on c.oid = tgrelid
        where not tgisinternal and relnamespace = current_schema()::regnamespace order by 1, 2`,
    ),
  }
}

export async function json(
  platform: DockerPlatform,
  name: string,
  key: string,
  method: string,
  path: string,
  body: unknown,
): Promise<unknown> {
  const response = await platform.tenantCall(name, method, path, {
    key,
    body: JSON.stringify(body),
    type: 'application/json',
  })
  const text = await response.text()
  if (!response.ok) throw new Error(`${method} ${path} returned ${response.status}: ${text}`)
  return text === '' ? undefined : JSON.parse(text)
}

export async function put(
  platform: DockerPlatform,
  name: string,
  key: string,
  path: string,
  content: string | Buffer,
): Promise<void> {
  const response = await platform.tenantCall(name, 'POST', `/storage/v1/object/${path}`, {
    key,
    body: content,
    type: 'application/octet-stream',
  })
  if (!response.ok) throw new Error(`${path} returned ${response.status}: ${await response.text()}`)
  await response.body?.cancel()
}

/** Returns every file below a directory, by its path. */
export async function filesBelow(directory: string): Promise<Map<string, Buffer>> {
  const entries = await readdir(directory, { recursive: true, withFileTypes: true })
  const files = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name))
  return new Map(await Promise.all(files.map(async (file) => [file, await readFile(file)] as const)))
}

/** Returns the names of the scratch homes' containers and volumes on the engine. */
export async function scratchObjects(platform: DockerPlatform): Promise<string[]> {
  const { containers, volumes } = await platform.host.observe(
    { installation: platform.installation },
    AbortSignal.timeout(10_000),
  )
  return [...containers, ...volumes].filter(({ labels }) => labels.stack.startsWith('s_')).map(({ name }) => name)
}
