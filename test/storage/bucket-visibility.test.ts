// Which buckets each caller can list and read (specification 2.1, 4.1, 7).
import t from 'tap'
import { startRuntime } from '#test/support/runtime.ts'
import { buckets, create, put } from './support/buckets.ts'
import { iso, uuid } from './support/objects.ts'

t.test('Buckets', async (t) => {
  const runtime = await startRuntime(t)

  t.test('Callers list their own and public buckets; the service lists all', async (t) => {
    const tenant = await runtime.addTenant()
    for (const caller of ['u1', 'u2']) {
      for (const policy of ['public', 'private', 'authenticated'])
        await create(tenant, caller, { name: `${caller}-${policy}`, policy })
    }
    await put(tenant, 'u1', 'u1-public/a.txt')
    await put(tenant, 'u1', 'u1-public/b/c.txt')
    const names = async (caller: string | undefined) => {
      const response = await tenant.request('GET', buckets, { as: caller })
      t.equal(response.status, 200)
      return response.list().map((bucket) => bucket['name'])
    }
    t.same(await names(undefined), ['u1-public', 'u2-public'])
    t.same(await names('u1'), ['u1-authenticated', 'u1-private', 'u1-public', 'u2-public'])
    t.same(await names('u2'), ['u1-public', 'u2-authenticated', 'u2-private', 'u2-public'])
    t.same(await names('u3'), ['u1-public', 'u2-public'])
    t.same(await names('service'), [
      'system',
      'u1-authenticated',
      'u1-private',
      'u1-public',
      'u2-authenticated',
      'u2-private',
      'u2-public',
    ])
    const [item] = (await tenant.request('GET', buckets)).list()
    t.match(item, { id: uuid, name: 'u1-public', policy: 'public', file_count: 2, total_size: 10 })
    t.notOk(item !== undefined && ('owner_id' in item || 'config' in item), 'list items have neither owner nor config')
    t.same(
      (await tenant.request('GET', `${buckets}?limit=2&offset=1&sortColumn=name&sortOrder=desc`, { as: 'u1' }))
        .list()
        .map(({ name }) => name),
      ['u1-public', 'u1-private'],
    )
    t.same(
      (await tenant.request('GET', `${buckets}?search=PRIVATE`, { as: 'service' })).list().map(({ name }) => name),
      ['u1-private', 'u2-private'],
    )
    t.equal((await tenant.request('GET', `${buckets}?limt=2`)).status, 400)
    t.equal((await tenant.request('GET', `${buckets}?search=%00`)).status, 400)
  })

  t.test('Callers who may see a bucket read it with its counters', async (t) => {
    const tenant = await runtime.addTenant()
    for (const policy of ['public', 'private', 'authenticated']) await create(tenant, 'u1', { name: policy, policy })
    await put(tenant, 'u1', 'private/a.txt')
    const own = await tenant.request('GET', `${buckets}/private`, { as: 'u1' })
    t.match(own.json(), {
      id: uuid,
      name: 'private',
      owner_id: 'u1',
      policy: 'private',
      config: { allowed_mime_types: [], max_file_size: 0 },
      file_count: 1,
      total_size: 5,
      created_at: iso,
    })
    const [row] = await tenant.rows("select id::text from storage_buckets where name = 'private'")
    const id = row?.['id'] as string
    t.same((await tenant.request('GET', `${buckets}/${id}`, { as: 'u1' })).json(), own.json(), 'by id and by name')
    const seen: Record<string, number[]> = {}
    for (const policy of ['public', 'private', 'authenticated']) {
      seen[policy] = []
      for (const caller of ['u1', 'u2', undefined, 'service'])
        seen[policy].push((await tenant.request('GET', `${buckets}/${policy}`, { as: caller })).status)
    }
    t.same(seen, { public: [200, 200, 200, 200], private: [200, 404, 404, 200], authenticated: [200, 200, 404, 200] })
    const hidden = await tenant.request('GET', `${buckets}/private`, { as: 'u2' })
    const absent = await tenant.request('GET', `${buckets}/nowhere`, { as: 'u2' })
    t.same(hidden.json(), absent.json(), 'a hidden bucket and an absent bucket have the same response')
    for (const key of ['%00', '..', 'a%2fb', '%F0%9F%92%A9', 'x'.repeat(5_000), id.toUpperCase()]) {
      const { status } = await tenant.request('GET', `${buckets}/${key}`, { as: 'u2' })
      t.ok(status >= 400 && status < 500, `${key.slice(0, 50)}: ${status}`)
    }
  })

  t.same(runtime.errors, [], 'no internal error occurred')
})
