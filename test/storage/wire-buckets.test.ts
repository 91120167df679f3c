// The requests and responses of buckets and lists that both versions of the storage clients rely on, rule by rule.
import t, { type Test } from 'tap'
import { startRuntime, type TestTenant } from '#test/support/runtime.ts'
import { objects } from './support/objects.ts'
import { storageOf, versions, type Storage } from './support/storage-clients.ts'
import { bucket, data, headersOf, names, openSetting } from './support/wire.ts'

t.test('Storage clients', async (t) => {
  const runtime = await startRuntime(t)

  for (const version of versions) {
    const setting = () => openSetting(runtime, version)

    t.test(`${version}: a listing has the defaults and options of the client`, async (t) => {
      const { tenant, storage, files } = await setting()
      await bucket(tenant, 'docs')
      await tenant.rows(
        `insert into storage_objects (bucket_id, path, blob_id, size, content_type, etag, created_at, updated_at)
         select b.id, 'f/' || lpad(n::text, 4, '0'), gen_random_uuid(), n, 'text/plain', 'x',
           now() - n * interval '1 second', now() + n * interval '1 second'
         from storage_buckets b, generate_series(1, 1005) n where b.name = 'docs'`,
      )
      const first = data(await files.list('f')) as unknown as Record<string, unknown>[]
      t.same([first.length, first[0]?.['name'], first[99]?.['name']], [100, '0001', '0100'], 'a hundred, by name')
      t.match(first[0], {
        id: String,
        created_at: String,
        updated_at: String,
        last_accessed_at: String,
        metadata: {
          size: 1,
          mimetype: 'text/plain',
          eTag: String,
          cacheControl: 'max-age=3600',
          lastModified: String,
          contentLength: 1,
          httpStatusCode: 200,
        },
      })
      t.same(
        await names(files, '/f/', { limit: 2, offset: 3 }),
        ['0004', '0005'],
        'extra slashes around a folder are ignored',
      )
      t.same(await names(files, 'f', { limit: 1, sortBy: { column: 'name', order: 'desc' } }), ['1005'])
      t.same(await names(files, 'f', { limit: 1, sortBy: { column: 'created_at', order: 'asc' } }), ['1005'])
      t.same(await names(files, 'f', { limit: 1, sortBy: { column: 'updated_at', order: 'asc' } }), ['0001'])
      t.same(await names(files, 'f', { limit: 1, sortBy: { column: 'last_accessed_at', order: 'desc' } }), ['1005'])
      t.same(await names(files, 'f', { limit: 1, sortBy: { order: 'desc' } }), ['1005'], 'the column has a default too')
      t.same(await names(files, 'f', { search: '100' }), ['0100', '1000', '1001', '1002', '1003', '1004', '1005'])
      t.same(await names(files, 'f', { search: '%' }), [], 'a search is not a pattern')
      t.same(
        data(await files.list()),
        [{ name: 'f', id: null, updated_at: null, created_at: null, last_accessed_at: null, metadata: null }],
        'a folder',
      )
      t.same(await names(files, 'f/0'), [], 'a folder is not a prefix')

      const page = data(await files.listV2())
      t.match(page, { hasNext: true, nextCursor: String, folders: [] })
      t.equal((page['objects'] as unknown[]).length, 1000, 'a thousand')
      const last = data(await files.listV2({ cursor: page['nextCursor'] }))
      t.match(last, { hasNext: false, objects: [{ key: 'f/1001' }, {}, {}, {}, { key: 'f/1005' }] })
      t.notOk('nextCursor' in last)
      t.match(data(await files.listV2({ prefix: 'f/%', limit: 1 })), { objects: [] }, 'a prefix is not a pattern')

      for (const name of ['aa-1', 'aa-2', 'bb-3']) await bucket(tenant, name)
      const buckets = async (options?: object) =>
        (data(await storage.listBuckets(options)) as unknown as { name: string }[]).map(({ name }) => name)
      t.same(await buckets(), ['aa-1', 'aa-2', 'bb-3', 'docs'])
      t.same(await buckets({ search: 'AA', sortColumn: 'name', sortOrder: 'desc' }), ['aa-2', 'aa-1'])
      t.same(await buckets({ limit: 1, offset: 1 }), ['aa-2'])
      t.same(await buckets({ sortColumn: 'created_at' }), ['docs', 'aa-1', 'aa-2', 'bb-3'])
      t.equal((await storage.listBuckets({ sortColumn: 'id' })).error, null)
    })

    t.test(`${version}: buckets are created and changed with the names of the client`, async (t) => {
      const { storage, service } = await setting()
      const shown = async (name: string) => data(await storage.getBucket(name))
      await storage.createBucket('docs', {
        public: true,
        fileSizeLimit: '20MB',
        allowedMimeTypes: ['image/*'],
        type: 'STANDARD',
      })
      t.match(await shown('docs'), {
        public: true,
        policy: 'public',
        file_size_limit: 20_000_000,
        allowed_mime_types: ['image/*'],
        type: 'STANDARD',
        owner: 'olga',
        config: { max_file_size: 20_000_000 },
      })
      await storage.updateBucket('docs', { public: true })
      t.match(
        await shown('docs'),
        { public: true, file_size_limit: 20_000_000, allowed_mime_types: ['image/*'] },
        'omitted fields remain unchanged',
      )
      await storage.updateBucket('docs', { public: false, fileSizeLimit: null, allowedMimeTypes: null })
      t.match(await shown('docs'), {
        public: false,
        policy: 'private',
        file_size_limit: null,
        allowed_mime_types: null,
        config: { max_file_size: 0, allowed_mime_types: [] },
      })
      await storage.updateBucket('docs', { public: false, fileSizeLimit: 7, allowedMimeTypes: [] })
      t.match(await shown('docs'), { file_size_limit: 7, allowed_mime_types: null })
      const id = String((await shown('docs'))['id'])
      t.equal(data(await storage.from(id).upload('a', 'x'))['fullPath'], 'docs/a', 'by ID and by name')
      t.match(data(await storage.from(id).list()), [{ name: 'a' }])
      t.match(data(await storage.updateBucket(id, { public: true })), { message: 'Successfully updated' })
      t.equal((await headersOf(storage.from(id).getPublicUrl('a').data.publicUrl)).text, 'x')
      t.match(data(await service.getBucket('system')), { owner: '', policy: 'private' })
      t.match(data(await storage.emptyBucket(id)), { message: 'Successfully emptied' })
      t.match(data(await storage.deleteBucket(id)), { message: 'Successfully deleted' })
    })
  }

  await routes(t, await runtime.addTenant({ name: 'routes' }))
  t.same(runtime.errors, [], 'no internal error occurred')
})

/** Tests buckets with the names of routes. */
async function routes(t: Test, tenant: TestTenant): Promise<void> {
  await t.test('Buckets with the names of routes are reached, and replace no route', async (t) => {
    const words = ['public', 'authenticated', 'info', 'list', 'list-v2', 'upload', 'sign']
    const ids: Record<string, string> = {}
    for (const word of [...words, 'avatars']) ids[word] = String((await bucket(tenant, word))['id'])
    const storage: Storage = storageOf(tenant, 'olga')
    const put = (target: string, body: string) =>
      tenant.request('POST', `${objects}/${target}`, { as: 'olga', body, headers: { 'content-type': 'text/plain' } })
    await put('avatars/me.png', 'avatar')
    for (const word of words) {
      t.equal((await put(`${ids[word] ?? ''}/avatars/deep/own.txt`, word)).status, 200, `${word} by its ID`)
      t.equal((await tenant.request('GET', `${objects}/${ids[word] ?? ''}/avatars/deep/own.txt`)).text, word)
    }
    for (const word of ['public', 'authenticated', 'info', 'list', 'list-v2', 'upload']) {
      t.equal(
        (await tenant.request('GET', `${objects}/${word}/avatars/deep/own.txt`, { as: 'olga' })).text,
        word,
        `${word}: the object, because the route finds none`,
      )
    }
    for (const word of words) t.equal((await put(`${ids[word] ?? ''}/avatars/me.png`, 'another')).status, 200)
    for (const word of ['public', 'authenticated'])
      t.equal(
        (await tenant.request('GET', `${objects}/${word}/avatars/me.png`)).text,
        'avatar',
        `${word}: no caller receives the object of another path`,
      )
    t.match((await tenant.request('GET', `${objects}/info/avatars/me.png`)).json(), { bucket_id: 'avatars', size: 6 })
    t.match(await storage.from('avatars').list(), { data: [{ name: 'me.png' }] })
    t.equal((await tenant.request('GET', `${objects}/public/nowhere/x`)).status, 404)
    t.equal((await tenant.request('GET', `${objects}/public/public/avatars/me.png`)).text, 'another')
  })
}
