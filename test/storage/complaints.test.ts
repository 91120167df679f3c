// Common complaints of users of other storage services, each shown not to apply here.
import t, { type Test } from 'tap'
import { startRuntime, type TestTenant } from '#test/support/runtime.ts'
import { storageOf, versions } from './support/storage-clients.ts'

const objects = '/storage/v1/object'
const text = { 'content-type': 'text/plain' }

async function bucket(tenant: TestTenant, name: string, policy: string): Promise<void> {
  const response = await tenant.request('POST', '/storage/v1/bucket', { as: 'olga', body: { name, policy } })
  if (response.status !== 201) throw new Error(response.text)
}

async function put(tenant: TestTenant, target: string, caller = 'olga'): Promise<void> {
  const response = await tenant.request('POST', `${objects}/${target}`, { as: caller, body: 'x', headers: text })
  if (response.status !== 200) throw new Error(response.text)
}

async function paths(tenant: TestTenant): Promise<unknown[]> {
  return (await tenant.rows('select path from storage_objects order by path')).map(({ path }) => path)
}

t.test('Complaints', async (t) => {
  const runtime = await startRuntime(t)

  t.test('Complaint: 400 for everything. Here clients receive the exact status', async (t) => {
    const tenant = await runtime.addTenant()
    await bucket(tenant, 'docs', 'public')
    await put(tenant, 'docs/a')
    const wanted = [404, 404, 403, 401, 409]
    const plain = [
      await tenant.request('GET', `${objects}/docs/absent`, { as: 'olga' }),
      await tenant.request('GET', `${objects}/absent/a`, { as: 'olga' }),
      await tenant.request('DELETE', `${objects}/docs/a`, { as: 'peter' }),
      await tenant.request('DELETE', `${objects}/docs/a`),
      await tenant.request('POST', `${objects}/docs/a`, {
        as: 'olga',
        body: 'x',
        headers: { ...text, 'x-upsert': 'false' },
      }),
    ]
    t.same(
      plain.map(({ status }) => status),
      wanted,
    )
    t.same(
      plain.map((response) => response.json()['statusCode']),
      wanted.map(String),
    )
    for (const version of versions) {
      const [olga, peter, anonymous] = ['olga', 'peter', undefined].map((caller) => storageOf(tenant, caller, version))
      const replies = [
        await olga?.from('docs').download('absent'),
        await olga?.from('absent').download('a'),
        await peter?.from('docs').move('a', 'b'),
        await anonymous?.emptyBucket('docs'),
        await olga?.from('docs').upload('a', 'x'),
      ]
      t.same(
        replies.map((reply) => reply?.error?.status),
        wanted,
        version,
      )
    }
  })

  t.test('Complaint: denials name no missing right. Here the message states who may act', async (t) => {
    const tenant = await runtime.addTenant()
    for (const policy of ['public', 'authenticated']) {
      await bucket(tenant, policy, policy)
      await put(tenant, `${policy}/a`)
      await put(tenant, `${policy}/dir/b`)
    }
    const body = { bucketId: 'authenticated', sourceKey: 'a', destinationKey: 'b' }
    const denied: [method: string, path: string, options: object, message: RegExp][] = [
      [
        'POST',
        `${objects}/public/new`,
        { body: 'x', headers: text },
        /the bucket's owner or the service role may upload into a public bucket$/,
      ],
      [
        'POST',
        `${objects}/upload/sign/public/new`,
        { body: {} },
        /the bucket's owner or the service role may upload into a public bucket$/,
      ],
      [
        'POST',
        `${objects}/authenticated/a`,
        { body: 'x', headers: text },
        /the object's owner in an authenticated bucket, the bucket's owner or the service role may overwrite it$/,
      ],
      ['DELETE', `${objects}/authenticated/a`, {}, /the object's owner .* or the service role may delete it$/],
      ['DELETE', `${objects}/public/a`, {}, /the bucket's owner or the service role may delete it$/],
      [
        'DELETE',
        `${objects}/public`,
        { body: { prefix: 'dir/' } },
        /the bucket's owner or the service role may delete it$/,
      ],
      ['POST', `${objects}/move`, { body }, /the bucket's owner or the service role may move it$/],
      [
        'POST',
        `${objects}/copy`,
        { body: { ...body, destinationBucket: 'public' } },
        /the bucket's owner or the service role may upload into a public bucket$/,
      ],
      [
        'PATCH',
        '/storage/v1/bucket/public',
        { body: { policy: 'private' } },
        /the bucket's owner or the service role may change it$/,
      ],
      ['POST', '/storage/v1/bucket/public/empty', { body: {} }, /the bucket's owner or the service role may empty it$/],
      ['DELETE', '/storage/v1/bucket/public', {}, /the bucket's owner or the service role may delete it$/],
    ]
    for (const [method, path, options, message] of denied) {
      const response = await tenant.request(method, path, { as: 'peter', ...options })
      t.equal(response.status, 403, `${method} ${path}`)
      t.match(response.json(), { code: 'ACCESS_DENIED', message }, `${method} ${path}`)
    }
    await put(tenant, 'authenticated/of-peter', 'peter')
    const moved = await tenant.request('POST', `${objects}/move`, {
      as: 'peter',
      body: { bucketId: 'authenticated', sourceKey: 'of-peter', destinationKey: 'b', destinationBucket: 'public' },
    })
    t.match(
      moved.json(),
      {
        statusCode: '403',
        message:
          /the object's owner in an authenticated bucket, the bucket's owner or the service role may write here$/,
      },
      'what only Postgres rejects',
    )
    t.same(await paths(tenant), ['a', 'a', 'dir/b', 'dir/b', 'of-peter'], 'and nothing was changed')
  })

  t.test('Complaint: no deletion by prefix. Here a folder is deleted with its contents and nothing else', (t) =>
    folders(t, runtime.addTenant()),
  )

  t.test(
    'Complaint: ghost folders block deleting a bucket. Here a folder exists only while it contains objects',
    async (t) => {
      const tenant = await runtime.addTenant()
      for (const version of versions) {
        const storage = storageOf(tenant, 'olga', version)
        await storage.createBucket('docs')
        const files = storage.from('docs')
        await files.upload('a/b/c.txt', 'x')
        await files.upload('a/.emptyFolderPlaceholder', '')
        t.match(await storage.deleteBucket('docs'), { error: { status: 409, message: /2 files\.$/ } })
        await files.move('a/b/c.txt', 'z/c.txt')
        t.match(
          (await files.list('a')).data,
          [{ name: '.emptyFolderPlaceholder' }],
          'a folder is gone with its last object',
        )
        await files.remove(['z/c.txt', 'a/.emptyFolderPlaceholder'])
        t.same((await files.list()).data, [], 'no folder remains')
        t.same((await files.listV2({ with_delimiter: true })).data, { hasNext: false, folders: [], objects: [] })
        t.match(await storage.deleteBucket('docs'), { error: null })
      }
    },
  )

  t.test(
    'Complaint: orphaned files after their rows are deleted. Here the sweep reports and collects them',
    async (t) => {
      const tenant = await runtime.addTenant()
      await bucket(tenant, 'docs', 'private')
      for (const name of ['a', 'b', 'c']) await put(tenant, `docs/${name}`)
      const hold = await tenant.files()
      await tenant.rows("delete from storage_objects where path in ('a', 'b')")
      const sweep = async (body: object) =>
        (await tenant.request('POST', '/storage/v1/admin/sweep', { as: 'service', body })).json()
      t.match(
        await sweep({ dry_run: true }),
        { files: 3, waiting: 2, orphans: 0, removed: 0 },
        'both files wait, and the sweep reports them',
      )
      t.same((await tenant.files()).sort(), hold.sort(), 'a dry run changes nothing')
      await sweep({})
      await runtime.storage.idle()
      t.match(await sweep({ dry_run: true }), { files: 1, waiting: 0, orphans: 0 })
      t.equal((await tenant.files()).length, 1)
      t.equal((await tenant.request('GET', `${objects}/docs/c`, { as: 'olga' })).text, 'x')
      const [usage] = await tenant.rows('select file_bytes::int, file_count::int from storage_usage')
      t.same(usage, { file_bytes: 1, file_count: 1 }, 'and the counters include it')
    },
  )

  t.same(runtime.errors, [], 'no internal error occurred')
})

async function folders(t: Test, made: Promise<TestTenant>): Promise<void> {
  const tenant = await made
  await bucket(tenant, 'docs', 'authenticated')
  const remove = (prefix: unknown, caller = 'olga', more: object = {}) =>
    tenant.request('DELETE', `${objects}/docs`, { as: caller, body: { prefix, ...more } })
  for (const name of ['a/1', 'a/b/2', 'a/b/c/3', 'a/ä', 'ab/4', 'a', 'a0', 'A/5', 'x%/6', 'xy/7'])
    await put(tenant, `docs/${encodeURI(name)}`)
  for (const wrong of ['', '/', 'a', 'a//', 'ab', 7, null, ['a/']])
    t.equal((await remove(wrong)).status, 400, JSON.stringify(wrong))
  t.equal((await remove('a/', 'olga', { prefixes: ['a0'] })).status, 400, 'one or the other')
  t.equal((await tenant.request('DELETE', `${objects}/docs`, { as: 'olga', body: {} })).status, 400)
  t.equal((await tenant.request('DELETE', `${objects}/docs`, { body: { prefix: 'a/' } })).status, 401)
  t.equal((await paths(tenant)).length, 10)
  t.same(
    (await remove('x%/')).json(),
    { message: 'Successfully deleted', removed: 1 },
    'a percent sign is not a wildcard',
  )
  t.same((await remove('a/')).json(), { message: 'Successfully deleted', removed: 4 })
  t.same(await paths(tenant), ['A/5', 'a', 'a0', 'ab/4', 'xy/7'])
  t.same((await remove('a/')).json(), { message: 'Successfully deleted', removed: 0 }, 'nothing remains')
  const reported = await tenant.rows(
    "select payload ->> 'path' as path from event_log where type = 'storage.object.deleted' order by 1",
  )
  t.same(
    reported.map(({ path }) => path).sort(),
    ['a/1', 'a/b/2', 'a/b/c/3', 'a/ä', 'x%/6'].sort(),
    'each object has its event',
  )

  await put(tenant, 'docs/both/olgas')
  await put(tenant, 'docs/both/peters', 'peter')
  t.equal((await remove('both/', 'petra')).status, 403, 'a user without the right to delete')
  t.match((await remove('both/', 'peter')).json(), { removed: 1 }, 'a user deletes their own objects of the folder')
  t.ok((await paths(tenant)).includes('both/olgas'))

  await tenant.rows(
    `insert into storage_objects (bucket_id, path, blob_id, size, content_type, etag)
     select b.id, 'many/' || n, gen_random_uuid(), 1, 'text/plain', 'x'
     from storage_buckets b, generate_series(1, 2500) n where b.name = 'docs'`,
  )
  t.match((await remove('many/')).json(), { removed: 2500 }, 'in steps, the whole folder')
  t.match((await tenant.request('GET', '/storage/v1/bucket/docs', { as: 'olga' })).json(), { file_count: 6 })
}
