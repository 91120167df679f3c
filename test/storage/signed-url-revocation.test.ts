// Signed URLs that are revoked, or whose bucket is deleted (specification, section 5.5).
import t from 'tap'
import { migrateHome } from '#test/support/home.ts'
import { send, startRuntime } from '#test/support/runtime.ts'
import { bucket, objects, text } from './support/objects.ts'
import { put, rejected, signRead, start } from './support/signed-urls.ts'

t.test('Signed URLs', async (t) => {
  const runtime = await startRuntime(t)

  t.test('The owner or the service revokes all signed URLs of a bucket, at once and permanently', async (t) => {
    const { tenant, read, upload } = await start(runtime)
    await bucket(tenant, 'others')
    await bucket(tenant, 'open', { policy: 'public' })
    await put(tenant, 'others/x', 'x')
    const elsewhere = await signRead(tenant, 'others/x')
    const revoke = (name: string, caller: string | undefined) =>
      tenant.request('POST', `/storage/v1/bucket/${name}/revoke-signed-urls`, { as: caller })
    for (const [caller, name, status, code] of [
      ['u2', 'docs', 404, 'NoSuchBucket'],
      ['u2', 'open', 403, 'ACCESS_DENIED'],
      [undefined, 'open', 401, 'UNAUTHORIZED'],
      [undefined, 'docs', 401, 'UNAUTHORIZED'],
      ['u1', 'nowhere', 404, 'NoSuchBucket'],
      ['u1', '%00', 400, 'BAD_REQUEST'],
    ] as const) {
      const response = await revoke(name, caller)
      t.equal(response.status, status, `${name} by ${caller ?? 'anonymous'}: ${response.text}`)
      if (status !== 400) t.match(response.json(), { code })
    }
    t.equal((await send(tenant.port, 'GET', read.url)).text, 'secret', 'rejected requests revoked nothing')

    t.match((await revoke('docs', 'u1')).json(), {
      message: String,
      id: String,
      signing_version: 2,
      updated_at: String,
    })
    rejected(t, await send(tenant.port, 'GET', read.url), 'an earlier read URL')
    rejected(t, await send(tenant.port, 'GET', read.url.replace('/sign/', '/')), 'on its plain path')
    rejected(t, await send(tenant.port, 'PUT', upload.url, text, 'changed'), 'an earlier upload URL')
    t.equal((await send(tenant.port, 'GET', elsewhere.url)).text, 'x', 'URLs of another bucket remain valid')
    const again = await signRead(tenant, 'docs/a/b%20c.txt')
    t.equal((await send(tenant.port, 'GET', again.url)).text, 'secret', 'a URL that is signed from now on is valid')
    t.match((await revoke('docs', 'service')).json(), { signing_version: 3 })
    rejected(t, await send(tenant.port, 'GET', again.url), 'until the next revocation')
    const versions = await Promise.all(Array.from({ length: 8 }, () => revoke('docs', 'u1')))
    t.same(
      versions.map((response) => Number(response.json()['signing_version'])).sort((a, b) => a - b),
      [4, 5, 6, 7, 8, 9, 10, 11],
      'each revocation counts',
    )
    t.same(
      await tenant.rows(
        `select type, owner_id, payload - 'timestamp' as payload from event_log
          where type = 'storage.bucket.urls_revoked' order by seq limit 1`,
      ),
      [
        {
          type: 'storage.bucket.urls_revoked',
          owner_id: 'u1',
          payload: { type: 'storage.bucket.urls_revoked', bucket: 'docs', owner_id: 'u1' },
        },
      ],
    )
    t.equal(
      (await tenant.rows("select count(*)::int as n from event_log where type = 'storage.bucket.urls_revoked'"))[0]?.[
        'n'
      ],
      10,
      'as many events',
    )
    const bulk = (
      await tenant.request('POST', `${objects}/sign/docs`, { as: 'u1', body: { expiresIn: 60, paths: ['second'] } })
    ).list()
    t.equal((await send(tenant.port, 'GET', `/storage/v1${String(bulk[0]?.['signedURL'])}`)).text, 'second')
  })

  t.test('A new bucket with the name of a deleted one does not make its signed URLs valid again', async (t) => {
    const { tenant, read, upload } = await start(runtime)
    await tenant.request('DELETE', `${objects}/docs`, { as: 'u1', body: { prefixes: ['a/b c.txt', 'second'] } })
    t.match((await send(tenant.port, 'GET', read.url)).json(), { code: 'NoSuchKey' }, 'the object is absent')
    t.equal((await tenant.request('DELETE', '/storage/v1/bucket/docs', { as: 'u1' })).status, 200)
    t.match((await send(tenant.port, 'GET', read.url)).json(), { code: 'NoSuchBucket' }, 'the bucket is absent')
    await bucket(tenant, 'docs', {}, 'u2')
    await put(tenant, 'docs/a/b%20c.txt', 'an object of another bucket', 'u2')
    rejected(t, await send(tenant.port, 'GET', read.url), 'reading')
    rejected(t, await send(tenant.port, 'PUT', upload.url, text, 'changed'), 'uploading')
    t.equal(
      (await tenant.request('POST', `${objects}/sign/docs/a/b%20c.txt`, { as: 'u1' })).status,
      404,
      'a caller without the right to read cannot sign',
    )
    t.equal(
      (await tenant.request('POST', `${objects}/upload/sign/docs/a`, { as: 'u1' })).status,
      404,
      'nor for an upload',
    )
  })

  t.test(
    'Signed URLs of a home that was created before buckets had a version are valid until the first revocation',
    async (t) => {
      const { tenant, read } = await start(runtime)
      await tenant.rows('alter table storage_buckets drop column signing_version')
      await tenant.rows('delete from home_migrations where version = 4')
      await migrateHome(runtime.postgres.url('postgres'), tenant.id)
      t.equal((await send(tenant.port, 'GET', read.url)).text, 'secret')
      t.match((await tenant.request('POST', '/storage/v1/bucket/docs/revoke-signed-urls', { as: 'u1' })).json(), {
        signing_version: 2,
      })
      rejected(t, await send(tenant.port, 'GET', read.url), 'after the revocation')
    },
  )

  t.same(runtime.errors, [], 'no internal error occurred')
})
