// The counters of a home: the usage of each hour is exact whatever changes it, and a tenant's SQL cannot reduce it.
import { HomeCounters, hourOf, type HomeHour } from '@tenantry/contract'
import t from 'tap'
import { Value } from 'typebox/value'
import { reservedCollections } from '#tenant-runtime/rest/registry/system-collections.ts'
import { callHost, compileHostCaller } from '#test/functions/support/host-caller.ts'
import { deployFunction, invoke } from '#test/functions/support/deployed.ts'
import { serve } from '#test/functions/support/fetching.ts'
import { command } from '#test/functions/support/wasm.ts'
import { freshCountersSql } from '#control-plane/backups/rehome-sql.ts'
import { query } from '#test/support/postgres.ts'
import { until } from '#test/support/until.ts'
import { startRuntime, type TestTenant } from '#test/support/runtime.ts'
import { hour0 } from './support/hours.ts'

t.test('A home', { timeout: 120_000 }, async (t) => {
  const runtime = await startRuntime(t, { abandonedMilliseconds: 0, mayReach: ['127.0.0.0/8'] })
  const readCounters = async (tenant: TestTenant, hours = 6) => {
    const response = await tenant.request('GET', `/internal/v1/tenants/${tenant.id}/books?hours=${hours}`)
    if (response.status !== 200) throw new Error(response.text)
    return Value.Parse(HomeCounters, response.json())
  }
  const sum = (hours: readonly HomeHour[], name: Exclude<keyof HomeHour, 'hour'>) =>
    hours.reduce((total, hour) => total + BigInt(hour[name] ?? 0), 0n)
  const upload = async (tenant: TestTenant, path: string, bytes: number) => {
    const response = await tenant.request('PUT', `/storage/v1/object/files/${path}`, {
      as: 'service',
      body: Buffer.alloc(bytes, path),
      headers: { 'content-type': 'text/plain' },
    })
    if (response.status >= 300) throw new Error(response.text)
  }
  const newTenant = async () => {
    const tenant = await runtime.addTenant()
    await tenant.request('POST', '/storage/v1/bucket', { as: 'service', body: { name: 'files' } })
    return tenant
  }
  /** Sets the start and the last update of the counters back by this many hours. */
  const backdate = (tenant: TestTenant, hours: number) =>
    tenant.rows(
      `alter table storage_usage disable trigger counted;
     update storage_usage set books_began = now() - make_interval(hours => ${hours}),
       counted_at = now() - make_interval(hours => ${hours}), file_byte_us = 0;
     alter table storage_usage enable trigger counted`,
    )

  t.test('Files count for as long as they are stored, in each hour, before and after a change', async (t) => {
    const tenant = await newTenant()
    await upload(tenant, 'a.txt', 70_000)
    await backdate(tenant, 5)
    const before = await readCounters(tenant)
    t.equal(before.hours.length, 6)
    for (const { file_byte_seconds } of before.hours.slice(1, 5)) t.equal(file_byte_seconds, String(70_000 * 3_600))
    await upload(tenant, 'a.txt', 10)
    t.ok((await tenant.request('DELETE', '/storage/v1/object/files/a.txt', { as: 'service' })).status < 300)
    const after = await readCounters(tenant)
    t.equal(after.books, before.books)
    t.same(after.hours.slice(0, 5), before.hours.slice(0, 5), 'past hours do not change')
    const total = sum(after.hours, 'file_byte_seconds')
    t.ok(total >= 70_000n * 5n * 3_600n && total < 70_000n * (5n * 3_600n + 60n), String(total))
    const [row] = await tenant.rows(
      'select trunc(file_byte_us / 1000000)::text as integral, file_bytes::int from storage_usage',
    )
    t.same(row, { integral: String(total), file_bytes: 0 })
    t.same(
      (await readCounters(tenant)).hours.map(({ file_byte_seconds }) => file_byte_seconds),
      after.hours.map(({ file_byte_seconds }) => file_byte_seconds),
      'no bytes are stored any longer',
    )
  })

  t.test('A deleted function and deleted records keep their usage', async (t) => {
    const tenant = await newTenant()
    await deployFunction(tenant, { name: 'one', wasm: command() })
    for (let n = 0; n < 3; n++) t.equal((await invoke(tenant, 'one')).status, 200)
    const [record] = await tenant.rows(
      `select sum(duration_ms)::text as ms, sum(round(cpu_ms * 1000))::bigint::text as cpu,
        sum(ceil(memory_peak / 1024.0) * duration_ms)::bigint::text as memory from function_invocations`,
    )
    const before = await readCounters(tenant)
    t.equal(sum(before.hours, 'function_invocations'), 3n)
    t.same(
      [
        sum(before.hours, 'function_milliseconds'),
        sum(before.hours, 'function_cpu_microseconds'),
        sum(before.hours, 'function_memory_kib_milliseconds'),
      ].map(String),
      [record?.['ms'], record?.['cpu'], record?.['memory']],
    )
    // A record that is removed before it is known to be on disk is written again, like one that a crash lost. The check locks it.
    await until(
      async () => (await tenant.rows("select from function_invocations where xmax::text = '0'")).length === 0,
      'the records are on disk',
    )
    await tenant.rows('delete from function_invocations where id = (select min(id) from function_invocations)')
    t.same((await readCounters(tenant)).hours, before.hours)
    t.equal((await tenant.request('DELETE', '/functions/v1/one', { as: 'service' })).status, 204)
    t.same(await tenant.rows('select * from function_invocations'), [])
    t.same((await readCounters(tenant)).hours, before.hours)
    await deployFunction(tenant, { name: 'one', wasm: command() })
    await invoke(tenant, 'one')
    t.equal(sum((await readCounters(tenant)).hours, 'function_invocations'), 4n)
  })

  t.test('What functions send counts when their runs have ended, and a later change does not reduce it', async (t) => {
    const tenant = await newTenant()
    const { port, seen } = await serve(t, (_request, response) => response.end())
    const url = `http://127.0.0.1:${port}/`
    await deployFunction(tenant, {
      name: 'one',
      wasm: await compileHostCaller(),
      config: { http_hosts: [`127.0.0.1:${port}`] },
    })
    const sent = async () => sum((await readCounters(tenant)).hours, 'function_egress_bytes')
    for (const bytes of [1_000, 500]) {
      const request = JSON.stringify({ method: 'POST', url })
      t.ok((await callHost(tenant, 'one', 'ada', 'fetch', request, 'x'.repeat(bytes))).ok)
    }
    const before = await sent()
    t.ok(before > 1_500n && before < 2_500n, String(before))
    t.equal(seen.length, 2)
    // As the runtime writes it before a request.
    const begin = (id: string, age: string) =>
      tenant.rows(
        `insert into function_invocations (id, function_id, trigger, egress_bytes, timestamp)
         select $1, id, 'http', 70, now() - $2::interval from functions`,
        [id, age],
      )
    await backdate(tenant, 2)
    await begin('running', '8 minutes')
    t.equal(await sent(), before, 'a run that may be in progress')
    await begin('killed', '10 minutes')
    t.equal(await sent(), before + 70n, 'a run that was killed')
    await tenant.rows("delete from function_invocations where id in ('running', 'killed')")
    t.equal(await sent(), before + 140n, 'a deleted record counts')
    t.equal((await tenant.request('DELETE', '/functions/v1/one', { as: 'service' })).status, 204)
    t.equal(await sent(), before + 140n)
    await tenant.rows('delete from usage_hours')
    t.equal(await sent(), before, 'the runtime has observed the runs that have ended')
  })

  t.test("A tenant's SQL does not reduce the runs that the runtime observed", async (t) => {
    const tenant = await newTenant()
    await deployFunction(tenant, { name: 'one', wasm: command() })
    for (let n = 0; n < 3; n++) await invoke(tenant, 'one')
    const before = await readCounters(tenant)
    await tenant.rows('alter table function_invocations disable trigger user; delete from function_invocations')
    t.same((await readCounters(tenant)).hours, before.hours)
    await tenant.rows('delete from usage_hours; drop trigger gone on function_invocations')
    await invoke(tenant, 'one')
    await tenant.rows('delete from function_invocations')
    t.equal(sum((await readCounters(tenant)).hours, 'function_invocations'), 4n)
  })

  t.test("A tenant's SQL does not reduce the files that the runtime observed", async (t) => {
    const tenant = await newTenant()
    await upload(tenant, 'a.txt', 500_000)
    const sweep = async () =>
      t.equal((await tenant.request('POST', '/storage/v1/admin/sweep', { as: 'service' })).status, 200)
    await sweep()
    const since = Date.now()
    await tenant.rows(
      `update storage_objects set size = 1; alter table storage_usage disable trigger counted;
        update storage_usage set file_byte_us = 0, counted_at = now()`,
    )
    await sweep()
    const minByteSeconds = (BigInt(Date.now() - since) * 500_000n) / 1_000n
    t.ok(sum((await readCounters(tenant)).hours, 'file_byte_seconds') >= minByteSeconds)
    t.match(await tenant.rows('select file_bytes::int from storage_usage'), [{ file_bytes: 1 }])
  })

  t.test("A tenant's SQL that changes what sweeps find does not reduce usage", async (t) => {
    const tenant = await newTenant()
    await upload(tenant, 'a.txt', 500_000)
    const sweep = async () =>
      t.equal((await tenant.request('POST', '/storage/v1/admin/sweep', { as: 'service' })).status, 200)
    await sweep()
    const since = Date.now()
    await tenant.rows(`alter table storage_usage disable trigger counted;
      update storage_usage set file_bytes = 0, file_byte_us = 0, counted_at = now();
      insert into blob_gc (blob_id) select blob_id from storage_objects`)
    await upload(tenant, 'b.txt', 1)
    await sweep()
    await upload(tenant, 'c.txt', 2)
    await readCounters(tenant)
    await upload(tenant, 'd.txt', 3)
    const minByteSeconds = (BigInt(Date.now() - since) * 500_000n) / 1_000n
    const { hours, file_bytes } = await readCounters(tenant)
    t.ok(
      sum(hours, 'file_byte_seconds') >= minByteSeconds,
      `${String(sum(hours, 'file_byte_seconds'))} of ${String(minByteSeconds)}`,
    )
    t.ok(file_bytes >= 500_000)
  })

  t.test(
    'Unreadable tables do not reduce usage: the last reported value continues, and observed usage counts',
    async (t) => {
      for (const [what, sql] of [
        ['a missing column', 'alter table usage_hours rename column value to worth'],
        ['no right to read', `revoke select on usage_hours from "$runtime"`],
        ['no counters', 'truncate storage_usage'],
        ['no table', 'alter table storage_usage rename to storage_used'],
        [
          'an error that looks like an outage',
          `alter table usage_hours rename to hours_used; create function down() returns int language plpgsql as $$
          begin raise exception 'down' using errcode = '57P01'; end $$;
          create view usage_hours as select hour, meter, value from hours_used where down() = 1`,
        ],
      ] as const) {
        const tenant = await newTenant()
        await deployFunction(tenant, { name: 'one', wasm: command() })
        await upload(tenant, 'a.txt', 500_000)
        for (let n = 0; n < 2; n++) await invoke(tenant, 'one')
        const before = await readCounters(tenant)
        await tenant.rows(sql.replace('$runtime', tenant.id))
        const since = Date.now()
        for (let n = 0; n < 2; n++) await invoke(tenant, 'one')
        await tenant.rows('alter table function_invocations disable trigger user; delete from function_invocations')
        for (let n = 0; n < 2; n++) {
          const after = await readCounters(tenant)
          t.equal(after.books, before.books, what)
          t.equal(sum(after.hours, 'function_invocations'), 4n, what)
          const minByteSeconds =
            sum(before.hours, 'file_byte_seconds') + (BigInt(Date.parse(after.at) - since) * 500_000n) / 1_000n - 1n
          t.ok(sum(after.hours, 'file_byte_seconds') >= minByteSeconds, what)
          t.ok(after.document_bytes >= before.document_bytes, what)
        }
      }
    },
  )

  t.test('A trigger that prevents the record of a run does not reduce usage', async (t) => {
    const tenant = await newTenant()
    await deployFunction(tenant, { name: 'one', wasm: await compileHostCaller(), config: { role: 'service_role' } })
    await tenant.rows(`create function never() returns trigger language plpgsql as $$ begin raise exception 'no'; end $$;
      create trigger never before update on function_invocations for each row execute function never()`)
    const response = await callHost(tenant, 'one', 'ada', 'query', 'select pg_sleep(0.1)')
    t.ok(response.ok)
    t.match(await tenant.rows('select duration_ms from function_invocations'), [{ duration_ms: 0 }])
    const { hours } = await readCounters(tenant)
    t.equal(sum(hours, 'function_invocations'), 1n)
    t.ok(sum(hours, 'function_milliseconds') >= 100n)
    t.ok(sum(hours, 'function_cpu_microseconds') > 0n)
  })

  t.test('Data in a table with a reserved name counts as documents', async (t) => {
    const tenant = await newTenant()
    const taken = new Set(
      (await tenant.rows('select relname from pg_class where relnamespace = $1::regnamespace', [tenant.id])).map(
        ({ relname }) => String(relname),
      ),
    )
    const free = [...reservedCollections].filter((name) => !taken.has(name))
    t.same(free, ['rpc'])
    const before = await readCounters(tenant)
    for (const name of free)
      await tenant.rows(
        `create table ${name} (data bytea); alter table ${name} alter column data set storage external;
            insert into ${name} select convert_to(repeat('x', 1000000), 'UTF8')`,
      )
    t.ok((await readCounters(tenant)).document_bytes >= before.document_bytes + 1_000_000 * free.length)
  })

  t.test('Files that SQL deletes no longer count', async (t) => {
    const tenant = await newTenant()
    await upload(tenant, 'a.txt', 500_000)
    await upload(tenant, 'b.txt', 1)
    await tenant.request('POST', '/storage/v1/admin/sweep', { as: 'service' })
    await tenant.rows('delete from storage_objects')
    const [before, after] = [await readCounters(tenant), await readCounters(tenant)]
    t.same(after.hours, before.hours)
    t.same(await tenant.files(), [], 'the check of the store has removed them')
  })

  t.test('No update changes the counters, and the runtime’s login cannot delete from them', async (t) => {
    const tenant = await newTenant()
    await upload(tenant, 'a.txt', 1_000)
    await backdate(tenant, 2)
    const before = await readCounters(tenant)
    const forged =
      "update storage_usage set file_byte_us = 0, counted_at = now() + interval '1 year', books = gen_random_uuid(), books_began = now()"
    await query(tenant.home.url, forged)
    await tenant.rows(forged)
    await t.rejects(query(tenant.home.adminUrl, forged), { code: '42501' })
    const after = await readCounters(tenant)
    t.equal(after.books, before.books)
    t.equal(after.began, before.began)
    t.same(after.hours.slice(0, 2), before.hours.slice(0, 2))
    await t.rejects(query(tenant.home.url, 'delete from usage_hours'), { code: '42501' })
  })

  t.test(
    'A home that is restored from a backup starts new counters; a home of an older version has none',
    async (t) => {
      const tenant = await newTenant()
      await upload(tenant, 'a.txt', 1_000)
      await deployFunction(tenant, { name: 'one', wasm: command() })
      await invoke(tenant, 'one')
      await backdate(tenant, 2)
      const before = await readCounters(tenant)
      await invoke(tenant, 'one')
      await tenant.rows(freshCountersSql(tenant.id))
      await invoke(tenant, 'one')
      tenant.change({})
      const [fresh] = await tenant.rows('select books::text from storage_usage')
      await tenant.rows('update storage_usage set books = gen_random_uuid()')
      const after = await readCounters(tenant)
      t.not(after.books, before.books)
      t.equal(after.books, fresh?.['books'])
      t.ok(after.began > before.began)
      t.equal(after.hours.length, 1)
      t.equal(sum(after.hours, 'function_invocations'), 2n, 'reported runs are not reported again, and all others are')
      t.same(await tenant.rows('select * from usage_hours'), [])
      await tenant.rows('drop trigger counted on storage_usage')
      await tenant.rows(freshCountersSql(tenant.id))
      tenant.change({})
      t.not((await readCounters(tenant)).books, after.books, 'also before the triggers of a backup exist')
      await tenant.rows('alter table storage_usage drop column books cascade')
      await tenant.rows(freshCountersSql(tenant.id))
    },
  )

  t.test('An invalid number of hours is rejected with its name', async (t) => {
    const tenant = await newTenant()
    for (const hours of ['x', '-1', '1000'])
      t.match((await tenant.request('GET', `/internal/v1/tenants/${tenant.id}/books?hours=${hours}`)).json(), {
        code: 'BAD_REQUEST',
        message: /"hours"/,
      })
    t.equal((await tenant.request('GET', '/internal/v1/tenants/t_00000000000000000000/books')).status, 404)
    t.equal(hourOf(hour0 + 5), hour0)
  })
})
