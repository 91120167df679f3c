// The service role's sweep: what it reports, what it removes and when, and what it leaves alone.
import t from 'tap'
import { startRuntime, type TestTenant } from '#test/support/runtime.ts'

const sweep = (tenant: TestTenant, body?: object, caller: string | undefined = 'service') =>
  tenant.request('POST', '/storage/v1/admin/sweep', { as: caller, ...(body === undefined ? {} : { body }) })

async function fill(tenant: TestTenant, count: number) {
  await tenant.request('POST', '/storage/v1/bucket', { as: 'ada', body: { name: 'files' } })
  for (let n = 0; n < count; n++) {
    const { status, text } = await tenant.request('POST', `/storage/v1/object/files/${n}`, {
      as: 'ada',
      body: 'x',
      headers: { 'content-type': 'text/plain' },
    })
    if (status !== 200) throw new Error(text)
  }
}

/** Deletes the rows without notifying the collector, as if they had been lost. */
async function lose(tenant: TestTenant, where: string) {
  await tenant.rows(`delete from storage_objects where ${where}`)
  await tenant.rows('delete from blob_gc')
}

t.test('Sweeping', async (t) => {
  const runtime = await startRuntime(t, { abandonedMilliseconds: 0 })

  t.test('Only the service role may sweep, and unknown fields are rejected', async (t) => {
    const tenant = await runtime.addTenant()
    t.equal((await tenant.request('POST', '/storage/v1/admin/sweep')).status, 401)
    t.equal((await sweep(tenant, {}, 'ada')).status, 403)
    t.equal((await sweep(tenant, { dry: true })).status, 400)
    t.equal((await sweep(tenant, { dry_run: 'yes' })).status, 400)
    t.same((await sweep(tenant)).json(), {
      dry_run: false,
      files: 0,
      abandoned_uploads: 0,
      waiting: 0,
      orphans: 0,
      removed: 0,
      phantoms: 0,
      refused: null,
    })
  })

  t.test('A dry run reports orphans and changes nothing; two sweeps that find an orphan remove it', async (t) => {
    const tenant = await runtime.addTenant()
    await fill(tenant, 3)
    await lose(tenant, "path = '1'")
    for (let times = 0; times < 3; times++) {
      t.match((await sweep(tenant, { dry_run: true })).json(), {
        dry_run: true,
        files: 3,
        orphans: 1,
        removed: 0,
        refused: null,
      })
    }
    t.equal((await tenant.files()).length, 3)
    t.match((await sweep(tenant)).json(), { files: 3, orphans: 1, removed: 0 }, 'the first sweep finds the orphan')
    t.match((await sweep(tenant)).json(), { files: 3, orphans: 1, removed: 1 }, 'the second removes it')
    t.match((await sweep(tenant)).json(), { files: 2, orphans: 0, removed: 0 })
    t.equal((await tenant.request('GET', '/storage/v1/object/files/2', { as: 'ada' })).text, 'x', 'other files remain')
  })

  t.test('Files of deleted objects stay while the database can be restored to a moment with them', async (t) => {
    const tenant = await runtime.addTenant()
    tenant.change({ retain_files_seconds: 3600 })
    await fill(tenant, 2)
    t.equal((await tenant.request('DELETE', '/storage/v1/object/files/0', { as: 'ada' })).status, 200)
    for (let times = 0; times < 3; times++)
      t.match((await sweep(tenant)).json(), { files: 2, waiting: 1, orphans: 0, removed: 0, refused: null })
    t.equal((await tenant.files()).length, 2)
    t.match(await tenant.rows('select file_count::int as n from storage_usage'), [{ n: 1 }], 'it is not used storage')
    await tenant.rows("update blob_gc set created_at = now() - interval '2 hours'")
    t.match((await sweep(tenant)).json(), { waiting: 0 })
    t.equal((await tenant.files()).length, 1)
  })

  t.test('An upload that never ended is dropped, and its bytes are released', async (t) => {
    const tenant = await runtime.addTenant()
    await fill(tenant, 1)
    await tenant.rows('insert into blob_intents (blob_id, reserved) values (gen_random_uuid(), 1000)')
    t.match((await sweep(tenant, { dry_run: true })).json(), { abandoned_uploads: 1 })
    t.equal((await tenant.rows('select reserved_bytes::int as n from storage_usage'))[0]?.['n'], 1000)
    t.match((await sweep(tenant)).json(), { abandoned_uploads: 1 })
    t.equal((await tenant.rows('select reserved_bytes::int as n from storage_usage'))[0]?.['n'], 0)
  })

  t.test('With too many files without a row, a sweep removes nothing and states the reason', async (t) => {
    const tenant = await runtime.addTenant()
    await fill(tenant, 22)
    await lose(tenant, 'true')
    for (const body of [{ dry_run: true }, {}, {}])
      t.match((await sweep(tenant, body)).json(), {
        files: 22,
        orphans: 22,
        removed: 0,
        refused: /22 of 22 files have no row/,
      })
    t.equal((await tenant.files()).length, 22)
  })

  t.test('An object without its file is counted when it is requested', async (t) => {
    const tenant = await runtime.addTenant()
    await fill(tenant, 1)
    await tenant.rows('update storage_objects set blob_id = gen_random_uuid()')
    t.match((await tenant.request('GET', '/storage/v1/object/files/0', { as: 'ada' })).json(), {
      statusCode: '404',
      code: 'FILE_MISSING',
    })
    t.match((await sweep(tenant, { dry_run: true })).json(), { phantoms: 1 })
  })

  t.test('Health of storage is reported to the control plane, only for tenants with something to report', async (t) => {
    const [well, ill] = [await runtime.addTenant(), await runtime.addTenant({ name: 'ill' })]
    await fill(well, 1)
    await fill(ill, 3)
    const reported = async (path: string) =>
      (await ill.request('GET', path)).json()['tenants'] as Record<string, unknown>
    t.same(await reported(`/internal/v1/tenants/${ill.id}/storage`), {}, 'nothing yet')
    await ill.rows("update storage_objects set blob_id = gen_random_uuid() where path = '0'")
    await ill.rows('delete from blob_gc')
    t.equal((await ill.request('GET', '/storage/v1/object/files/0', { as: 'ada' })).status, 404)
    t.equal((await ill.request('PUT', `/internal/v1/tenants/${ill.id}/hold`, { body: { seconds: 600 } })).status, 200)
    t.equal((await ill.request('DELETE', '/storage/v1/object/files/1', { as: 'ada' })).status, 200)
    for (const tenant of [well, ill]) await sweep(tenant)
    const state = { phantoms: 1, orphans: 1, backlog: 1 }
    t.same(await reported(`/internal/v1/tenants/${ill.id}/storage`), { [ill.id]: state })
    t.same((await reported('/internal/v1/storage'))[ill.id], state)
    t.notOk(well.id in (await reported('/internal/v1/storage')), 'a healthy tenant is not listed')
    t.equal((await ill.request('DELETE', `/internal/v1/tenants/${ill.id}/hold`)).status, 200)
    for (let times = 0; times < 3; times++) await sweep(ill)
    t.same(await reported(`/internal/v1/tenants/${ill.id}/storage`), { [ill.id]: { ...state, orphans: 0, backlog: 0 } })
  })
})
