// Backups of tenants that share a database, with a real Postgres, runtime and control plane: what comes back, where, and what
// happens to neighbours, to damaged backups, and after kills.
import { randomBytes, randomUUID } from 'node:crypto'
import { mkdir, mkdtemp, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { getPriority, tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import t, { type Test } from 'tap'
import { asReader } from '#control-plane/backups/shared/shared-server.ts'
import { effort } from '#test/support/effort.ts'
import { everyObjectSql } from './support/every-object.ts'
import { startPlatform } from '#test/support/platform.ts'
import { query } from '#test/support/postgres.ts'
import { until } from '#test/support/until.ts'

interface Owner {
  id: string
  name: string
  key: string
  url: string
}

t.test('Backups of tenants that share a database', async (t) => {
  const root = await mkdtemp(join(tmpdir(), 'tenantry-shared-backups-'))
  const directory = join(root, 'first')
  // The second target is not available until the last test.
  const second = join(root, 'second')
  await writeFile(join(root, 'targets.json'), JSON.stringify([{ name: 'second', directory: second }]))
  const platform = await startPlatform({
    control: { TENANTRY_BACKUPS: directory, TENANTRY_BACKUP_TARGETS_FILE: join(root, 'targets.json') },
  })
  t.teardown(async () => {
    await platform.stop()
    await rm(root, { recursive: true, force: true })
  })
  let control = await platform.startControlPlane()
  const homes = platform.postgres.url(platform.homesDatabase)

  const toOwner = (body: Record<string, unknown>): Owner => ({
    id: String(body['tenant_id']),
    name: String(body['name']),
    key: String((body['keys'] as Record<string, unknown>)['secret_key']),
    url: String(body['database_url']),
  })
  const create = async (name: string) => {
    const { body } = await platform.call(
      'POST',
      '/v1/tenants',
      { name, plan: 'Free', region: 'local' },
      { prefer: 'wait=30' },
    )
    t.equal(body['status'], 'ready')
    return toOwner(body)
  }
  const operation = async (path: string, body?: unknown) => {
    const { status, body: done } = await platform.call('POST', path, body, { prefer: 'wait=60' })
    t.equal(status, 202, JSON.stringify(done))
    const { id } = done['operation'] as { id: string }
    let ended: Record<string, unknown> = {}
    await until(async () => {
      ended = (await platform.call('GET', `/v1/operations/${id}`)).body
      return ['succeeded', 'failed'].includes(String(ended['state']))
    })
    return { body: done, ended, id: String(done['id']) }
  }
  const request = async (owner: Owner, method: string, path: string, body?: unknown) => {
    const response = await platform.tenantCall(owner.name, method, path, {
      key: owner.key,
      ...(body === undefined ? {} : { body: JSON.stringify(body), type: 'application/json' }),
    })
    const text = await response.text()
    return { status: response.status, text }
  }
  const sql = async <T extends Record<string, unknown>>(owner: Owner, text: string) => {
    const client = new pg.Client({ connectionString: owner.url })
    await client.connect()
    try {
      const result: unknown = await client.query(text)
      return Array.isArray(result) ? [] : (result as pg.QueryResult<T>).rows
    } finally {
      await client.end()
    }
  }
  const upload = async (owner: Owner, path: string, bytes: Uint8Array) =>
    platform.tenantCall(owner.name, 'POST', `/storage/v1/object/files/${path}`, {
      key: owner.key,
      body: bytes,
      type: 'application/octet-stream',
    })
  const download = async (owner: Owner, path: string) => {
    const response = await platform.tenantCall(owner.name, 'GET', `/storage/v1/object/files/${path}`, {
      key: owner.key,
    })
    return response.status === 200 ? Buffer.from(await response.arrayBuffer()) : response.status
  }

  const verify = async (backupId: string) => {
    await operation(`/v1/backups/${backupId}/verify`)
    return platform.call('GET', `/v1/backups/${backupId}`)
  }

  const ada = await create('ada')
  const ben = await create('ben')
  const files = new Map([
    ['a.bin', randomBytes(100_000)],
    ['empty.bin', Buffer.alloc(0)],
    ['b.bin', randomBytes(3_000_000)],
  ])
  const fill = async (owner: Owner) => {
    t.equal((await request(owner, 'POST', '/storage/v1/bucket', { name: 'files', policy: 'private' })).status, 201)
    const schema = {
      name: 'notes',
      fields: [
        { name: 'id', type: 'uuid', primary: true },
        { name: 'owner_id', type: 'string' },
        { name: 'text', type: 'string', required: true },
      ],
      rls_policy: { type: 'ownership', owner_field: 'owner_id' },
    }
    t.equal((await request(owner, 'POST', '/rest/v1/schemas', schema)).status, 201)
    t.equal((await request(owner, 'POST', '/admin/reload-schemas')).status, 200)
  }
  await fill(ada)
  await fill(ben)
  // A schema of the interface, which is a part of names, and a function before its requests.
  await sql(
    ada,
    `create table "extra.facts" (id int); insert into "extra.facts" values (7);
     alter table "extra.facts" enable row level security; create policy all_rows on "extra.facts" using (true);
     create function stamp() returns void language plpgsql as $$ begin
       perform set_config('response.headers', '[{"X-Stamp": "before"}]', true); end $$;`,
  )
  const settings = { db_schemas: ['public', 'extra'], db_pre_request: 'stamp' }
  t.equal((await request(ada, 'POST', '/admin/reload-schemas', { settings })).status, 200)
  const serves = async (t: Test, owner: Owner) => {
    const init = { key: owner.key, headers: { 'accept-profile': 'extra' } }
    const response = await platform.tenantCall(owner.name, 'GET', '/rest/v1/facts', init)
    t.equal(`${response.headers.get('x-stamp')} ${await response.text()}`, 'before [{"id":7}]', 'with its settings')
  }
  await serves(t, ada)
  for (const [path, bytes] of files) t.equal((await upload(ada, path, bytes)).status, 200)
  t.equal((await upload(ben, 'a.bin', Buffer.from("ben's"))).status, 200)
  for (const text of ['one', "tw\\o '\n\t", 'drei €']) {
    t.equal((await request(ada, 'POST', '/rest/v1/notes', { id: randomUUID(), owner_id: 'ada', text })).status, 201)
  }
  t.equal((await request(ben, 'POST', '/rest/v1/notes', { id: randomUUID(), text: "ben's" })).status, 201)
  // Every kind of object that a tenant can create in SQL and that a backup supports.
  await sql(ada, everyObjectSql)
  const figures = (owner: Owner) =>
    sql(
      owner,
      `select (select md5(string_agg(f::text, '|' order by id)) from facts f) as facts, (select sum(id) from parts) as parts, (select
        count(*) from parts_2) as later,
         (select n from counts) as counted, (select count(*) from seen) as seen, (select sum(count) from grouped) as grouped,
           nextval('counted') as next,
         obj_description('facts'::regclass) as comment, (select count(*) from pg_policies where schemaname = current_schema and
           tablename = 'facts') as policies,
         (select count(*) from pg_proc where proname = 'label' and proacl is not null
           and pronamespace = current_schema::regnamespace) as closed, (select string_agg(text, ',' order by
           text) from notes) as notes`,
    )
  const [before] = await figures(ada)
  const nextValue = Number(before?.['next'])

  const taken = await operation(`/v1/tenants/${ada.id}/backups`)
  t.match(taken.ended, { state: 'succeeded' }, 'a backup is taken on demand')
  const { body: backup } = await platform.call('GET', `/v1/backups/${taken.id}`)
  t.match(backup, { state: 'complete', isolation: 'schema-per-tenant', tenant_id: ada.id })

  t.test(
    'the login that reads a home for a backup sees all of it, nothing of another one, and changes nothing',
    async (t) => {
      const location = { postgresUrl: platform.postgres.url('postgres'), database: platform.homesDatabase }
      await asReader(location, ada.id, ada.id, AbortSignal.timeout(60_000), async (client) => {
        t.match((await client.query('select count(*)::int as n from notes')).rows, [{ n: 3 }])
        await t.rejects(client.query(`select from ${ben.id}.notes`), { message: /permission denied/ })
        await t.rejects(client.query(`select from ${ben.id}.storage_objects`), { message: /permission denied/ })
        await t.rejects(client.query('delete from notes'), { message: /read-only/ })
        const [session] = (await client.query<{ pid: number }>('select pg_backend_pid() as pid')).rows
        t.equal(getPriority(session?.pid), 10, 'its process yields to those of requests')
      })
      const reader = await query(homes, `select count(*)::int as n from pg_roles where rolname like 'tenantry_%er_%'`)
      t.match(reader, [{ n: 0 }], 'the login that read the home is gone')
    },
  )

  t.test('a backup is verified', async (t) => {
    t.match((await operation(`/v1/backups/${taken.id}/verify`)).ended, { state: 'succeeded', error: null })
    t.match((await platform.call('GET', `/v1/backups/${taken.id}`)).body, { verify_error: null })
    const left = await query(homes, "select datname from pg_database where datname like 'tenantry_scratch%'")
    t.same(left, [], 'no scratch database is left')
  })

  t.test('it is restored into a new tenant', async (t) => {
    const restored = await operation(`/v1/backups/${taken.id}/restore`, { into: { name: 'eve' } })
    t.match(restored.ended, { state: 'succeeded', error: null })
    const eve = toOwner(restored.body)
    const [found] = await figures(eve)
    t.match({ ...found, next: undefined }, { ...before, next: undefined })
    for (const [path, bytes] of files) t.same(await download(eve, path), bytes, path)
    await serves(t, eve)
    t.same(
      await query(
        homes,
        `select distinct tenant_id from ${eve.id}.notes union select distinct tenant_id from ${eve.id}.storage_objects`,
      ),
      [{ tenant_id: eve.id }],
      'the rows of the platform belong to the new tenant',
    )
    t.equal((await upload(eve, 'new.bin', Buffer.from('new'))).status, 200, 'the new tenant is written to')
    t.equal((await request(eve, 'POST', '/rest/v1/notes', { id: randomUUID(), text: 'new' })).status, 201)
    t.match((await platform.call('DELETE', `/v1/tenants/${eve.id}`)).status, 202)
  })

  t.test('it is restored into the same tenant, which is served meanwhile', async (t) => {
    await sql(ada, `drop table wide; delete from facts where id > 10; create table later (id int)`)
    t.equal((await upload(ada, 'later.bin', Buffer.from('later'))).status, 200)
    t.equal(
      (await platform.tenantCall(ada.name, 'DELETE', '/storage/v1/object/files/a.bin', { key: ada.key })).status < 300,
      true,
    )
    const restored = await operation(`/v1/backups/${taken.id}/restore`, { into: 'same' })
    t.match(restored.ended, { state: 'succeeded', error: null })
    const [found] = await figures(ada)
    t.match({ ...found, next: undefined }, { ...before, next: undefined })
    t.equal(Number(found?.['next']), nextValue + 5, 'the sequence continues at the position of the backup')
    for (const [path, bytes] of files) t.same(await download(ada, path), bytes, path)
    t.equal(await download(ada, 'later.bin'), 404)
    await serves(t, ada)
    t.same(await sql(ada, "select to_regclass('later') as later, to_regclass('wide')::text as wide"), [
      { later: null, wide: 'wide' },
    ])
    t.equal((await upload(ada, 'again.bin', Buffer.from('again'))).status, 200, 'the tenant is written to')
    t.equal((await request(ada, 'POST', '/rest/v1/notes', { id: randomUUID(), text: 'again' })).status, 201)
    const left = await query(homes, `select nspname from pg_namespace where nspname like '${ada.id}\\_%'`)
    t.same(left, [], 'the old home is gone')
  })

  t.test('a damaged backup is rejected by name before anything is changed', async (t) => {
    const installation = (await readdir(directory)).find((name) => !name.startsWith('control-database-')) ?? ''
    const file = join(directory, installation, taken.id, 'database')
    const whole = await readFile(file)
    const damaged = Buffer.from(whole)
    damaged[damaged.length >> 1] = (damaged[damaged.length >> 1] ?? 0) ^ 1
    await writeFile(file, damaged)
    const [facts] = await figures(ada)
    for (const [path, body] of [
      ['verify', undefined],
      ['restore', { into: 'same' }],
    ] as const) {
      const { ended } = await operation(`/v1/backups/${taken.id}/${path}`, body)
      t.match(ended, { state: 'failed', error: /part "database"|"database"/ }, path)
    }
    t.match({ ...(await figures(ada))[0], next: undefined }, { ...facts, next: undefined })
    await writeFile(file, whole)
  })

  t.test('a home with an object that cannot be backed up is named', async (t) => {
    await sql(ben, 'create aggregate total (int) (sfunc = int4pl, stype = int)')
    const { ended } = await operation(`/v1/tenants/${ben.id}/backups`)
    t.match(ended, { state: 'failed', error: /aggregate "total"/ })
    await sql(ben, 'drop aggregate total (int)')
    // One of them at a time, because the memory of a session is limited.
    const largeOnes = ['one', 'two', 'three', 'four', 'five', 'six'].map((name) => `large_${name}`)
    for (const name of largeOnes)
      await sql(ben, `create function ${name}() returns text language sql as 'select ''${'x'.repeat(6_000_000)}'''`)
    const large = await operation(`/v1/tenants/${ben.id}/backups`)
    t.match(large.ended, { state: 'failed', error: /definitions of the home's objects have more than 33554432 bytes/ })
    await sql(ben, `drop function ${largeOnes.join(', ')}`)
    await sql(ben, `create table broad as select repeat(md5('x'), 2200000) as text`)
    const broad = await operation(`/v1/tenants/${ben.id}/backups`)
    t.match(broad.ended, { state: 'failed', error: /A row of the table "broad" has 704\d+ bytes. Allowed: 67108864./ })
    await sql(ben, 'drop table broad')
  })

  t.test('a schedule takes backups', async (t) => {
    const { status } = await platform.call('PATCH', `/v1/tenants/${ben.id}`, { backup_schedule: '0 3 * * *' })
    t.equal(status, 200)
    // As if the schedule had been followed since two days ago.
    await until(async () => {
      const rows = await query(
        platform.postgres.url('control'),
        `update tenants set backup_seen_at = now() - interval '2 days' where id = '${ben.id}' and backup_seen_at is not null returning
          id`,
      )
      return rows.length > 0
    })
    await until(async () => {
      const { body } = await platform.call('GET', `/v1/tenants/${ben.id}/backups`)
      return (body['backups'] as Record<string, unknown>[]).some(
        ({ trigger, state }) => trigger === 'schedule' && state === 'complete',
      )
    })
    t.equal((await platform.call('PATCH', `/v1/tenants/${ben.id}`, { backup_schedule: null })).status, 200)
  })

  t.test('kills of the control plane leave nothing behind, and the tenant whole', async (t) => {
    for (let round = 0; round < effort({ small: 3, full: 40 }); round++) {
      const isRestore = round % 2 === 0
      const { body } = await platform.call(
        'POST',
        isRestore ? `/v1/backups/${taken.id}/restore` : `/v1/tenants/${ada.id}/backups`,
        isRestore ? { into: 'same' } : undefined,
      )
      const { id } = body['operation'] as { id: string }
      await new Promise((resolve) => setTimeout(resolve, (900 + round * 397) % 1_500))
      control.process.kill('SIGKILL')
      await control.exited
      control = await platform.startControlPlane()
      let ended: Record<string, unknown> = {}
      await until(async () => {
        ended = (await platform.call('GET', `/v1/operations/${id}`)).body
        return ['succeeded', 'failed'].includes(String(ended['state']))
      })
      if (isRestore) t.match(ended, { state: 'succeeded' }, 'a restore begins again')
      else {
        const { body: made } = await platform.call('GET', `/v1/backups/${String(body['id'])}`)
        t.ok(made['state'] === 'complete' || made['state'] === 'failed', 'a backup is complete or failed')
        const { body: verified } = made['state'] === 'complete' ? await verify(String(body['id'])) : { body: undefined }
        t.match(verified?.['verify_error'] ?? null, null)
      }
      await until(async () => (await platform.call('GET', `/v1/tenants/${ada.id}`)).body['status'] === 'ready')
      t.match({ ...(await figures(ada))[0], next: undefined }, { ...before, next: undefined }, 'the content is whole')
      for (const [path, bytes] of files) t.same(await download(ada, path), bytes, path)
      t.same(
        await query(
          homes,
          `select rolname as name from pg_roles where rolname like 'tenantry_reader_%' or rolname like 'tenantry_loader_%'
           union all select nspname from pg_namespace where nspname like 't\\_%\\_%' and nspname not like '%\\_pristine'
           union all select datname from pg_database where datname like 'tenantry_scratch%'`,
        ),
        [],
        'nothing is left',
      )
    }
  })

  t.test(
    'a backup is made in the target that is available, verified there, and copied to the other one later',
    async (t) => {
      const copies = async (id: string) => {
        const { copies: all } = (await platform.call('GET', `/v1/backups/${id}`)).body as {
          copies: { target: string; state: string }[]
        }
        return all.map(({ target, state }) => `${target} ${state}`)
      }
      await mkdir(second)
      await rename(directory, join(root, 'away'))
      const { ended, id } = await operation(`/v1/tenants/${ada.id}/backups`)
      t.match(ended, { state: 'succeeded' })
      t.same(await copies(id), ['directory unavailable', 'second complete'])
      t.match((await verify(id)).body, { verify_error: null, verified: String })
      await rename(join(root, 'away'), directory)
      t.same(await copies(id), ['directory missing', 'second complete'])
      // A new leader compares the targets at once.
      control.process.kill('SIGKILL')
      await control.exited
      control = await platform.startControlPlane()
      for (const backup of [id, taken.id])
        await until(async () => (await copies(backup)).every((copy) => copy.endsWith(' complete')))
    },
  )

  t.test('neighbours are untouched', async (t) => {
    t.same(await sql(ben, 'select text from notes'), [{ text: "ben's" }])
    t.same(await download(ben, 'a.bin'), Buffer.from("ben's"))
  })
})
