// The runtime on a real S3 server: callers see the same as on files. When the server is away they receive a retryable
// error, never an internal one.
import { createHash, randomBytes } from 'node:crypto'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { cp, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { Readable } from 'node:stream'
import t from 'tap'
import { internalPaths, internalTokenHeader } from '@tenantry/contract'
import { bundleOf } from '#images/bundle.ts'
import { S3Backend } from '#tenant-runtime/storage/backend/s3.ts'
import { freePort } from '#test/support/postgres.ts'
import { startS3Server } from '#test/support/s3-server.ts'
import { send, startRuntime, type TestTenant } from '#test/support/runtime.ts'

const megabyte = 2 ** 20
const binary = { 'content-type': 'application/octet-stream' }
const sha256 = (body: Buffer) => createHash('sha256').update(body).digest('hex')

const put = (tenant: TestTenant, path: string, body: Buffer | Buffer[], headers = {}) =>
  tenant.request('POST', `/storage/v1/object/docs/${path}`, { as: 'u1', headers: { ...binary, ...headers }, body })
const get = (tenant: TestTenant, path: string, headers = {}) =>
  tenant.request('GET', `/storage/v1/object/docs/${path}`, { as: 'u1', headers })

t.test('Files of a tenant in a bucket behave as on disk', async (t) => {
  const server = await startS3Server()
  t.teardown(() => server.stop())
  const backend = new S3Backend(server.settings, 0)
  const { storage, addTenant } = await startRuntime(t, { backend, abandonedMilliseconds: 0 })
  const tenant = await addTenant()
  const blobs = async () => (await server.keys()).whole.filter((key) => key.startsWith(`here/${tenant.id}/blobs/`))
  const { status } = await tenant.request('POST', '/storage/v1/bucket', { as: 'u1', body: { name: 'docs' } })
  t.equal(status, 201)

  await t.test('upload, download, ranges, overwrite, copy, move, delete', async (t) => {
    const [small, large] = [randomBytes(10_000), randomBytes(6 * megabyte + 3)]
    t.equal((await put(tenant, 'small', small)).status, 200)
    t.equal(
      (await put(tenant, 'large', [large.subarray(0, 100), large.subarray(100)])).status,
      200,
      'of undeclared length, in parts',
    )
    for (const [path, body] of [
      ['small', small],
      ['large', large],
    ] as const) {
      const { headers, bytes } = await get(tenant, path)
      t.ok(body.equals(bytes), `${path}: whole`)
      t.equal(headers.etag, `"${sha256(body)}"`)
      const part = await get(tenant, path, { range: 'bytes=5000-9999' })
      t.ok(part.status === 206 && body.subarray(5000, 10_000).equals(part.bytes), `${path}: a range`)
      const parts = await get(tenant, path, { range: 'bytes=7-8,0-1' })
      t.ok(
        parts.status === 206 && parts.bytes.includes(body.subarray(7, 9)) && parts.bytes.includes(body.subarray(0, 2)),
        `${path}: two ranges`,
      )
    }
    t.equal((await put(tenant, 'small', large.subarray(0, 20_000))).status, 200)
    t.ok(large.subarray(0, 20_000).equals((await get(tenant, 'small')).bytes), 'overwritten')
    t.equal((await put(tenant, 'empty', Buffer.alloc(0))).status, 200)
    t.equal((await get(tenant, 'empty')).bytes.length, 0)
    const copied = await tenant.request('POST', '/storage/v1/object/copy', {
      as: 'u1',
      body: { bucketId: 'docs', sourceKey: 'large', destinationKey: 'copy' },
    })
    const moved = await tenant.request('POST', '/storage/v1/object/move', {
      as: 'u1',
      body: { bucketId: 'docs', sourceKey: 'large', destinationKey: 'moved' },
    })
    t.same([copied.status, moved.status], [200, 200])
    t.same(
      [sha256((await get(tenant, 'copy')).bytes), sha256((await get(tenant, 'moved')).bytes)],
      [sha256(large), sha256(large)],
    )
    t.equal((await tenant.request('DELETE', '/storage/v1/object/docs/moved', { as: 'u1' })).status, 200)
    t.equal((await get(tenant, 'moved')).status, 404)
  })

  await t.test('A rejected upload leaves nothing behind, and released blobs are removed', async (t) => {
    await tenant.request('PATCH', '/storage/v1/bucket/docs', { as: 'u1', body: { max_file_size: 6 * megabyte } })
    const tooLong = Array.from({ length: 14 }, () => Buffer.alloc(megabyte / 2))
    t.equal((await put(tenant, 'too-large', tooLong)).status, 413, 'detected only during the upload')
    await storage.idle()
    t.equal((await blobs()).length, 3, 'small, empty and the copy')
    t.same((await server.keys()).begun, [])
    const [row] = await tenant.rows(
      `select (select count(*) from blob_intents)::int as intents, (select count(*) from blob_gc)::int as collectable,
        reserved_bytes::int as reserved from storage_usage`,
    )
    t.same(row, { intents: 0, collectable: 0, reserved: 0 })
  })

  await t.test('A sweep finds unreferenced blobs and removes them the second time', async (t) => {
    await backend.put(tenant.id, '00000000-0000-4000-8000-000000000000', Readable.from([Buffer.from('orphan')]), 100)
    const sweep = async () => {
      const {
        files,
        orphans,
        removed,
        refused: rejected,
      } = (await tenant.request('POST', '/storage/v1/admin/sweep', { as: 'service', body: {} })).json()
      return { files, orphans, removed, refused: rejected }
    }
    t.same(await sweep(), { files: 4, orphans: 1, removed: 0, refused: null })
    t.same(await sweep(), { files: 4, orphans: 1, removed: 1, refused: null })
    t.same(await sweep(), { files: 3, orphans: 0, removed: 0, refused: null })
  })

  await t.test(
    'Callers receive a retryable error while the S3 server is away; afterwards all requests succeed',
    async (t) => {
      t.equal((await tenant.request('GET', '/health')).status, 200)
      await server.kill()
      const responses = await Promise.all([
        get(tenant, 'small', { range: 'bytes=0-9' }),
        get(tenant, 'copy', { range: 'bytes=5-9' }),
        put(tenant, 'new', Buffer.alloc(1000)),
        tenant.request('POST', '/storage/v1/object/copy', {
          as: 'u1',
          body: { bucketId: 'docs', sourceKey: 'small', destinationKey: 'copy-2' },
        }),
        tenant.request('POST', '/storage/v1/admin/sweep', { as: 'service', body: {} }),
      ])
      t.same(
        responses.map(({ status, json }) => [status, json()['code']]),
        responses.map(() => [503, 'STORAGE_UNAVAILABLE']),
      )
      t.ok(responses.every(({ headers }) => headers['retry-after'] === '1'))
      t.equal(
        (await tenant.request('HEAD', '/storage/v1/object/docs/small', { as: 'u1' })).status,
        200,
        'requests that need no bytes succeed',
      )
      t.equal(
        (await tenant.request('DELETE', '/storage/v1/object/docs/empty', { as: 'u1' })).status,
        200,
        'a delete succeeds too, and the file is removed later',
      )
      const health = await tenant.request('GET', '/health')
      t.same(
        [health.status, (health.json()['components'] as { storage: { status: string } }).storage.status],
        [503, 'unhealthy'],
      )

      await server.start()
      t.equal((await tenant.request('GET', '/health')).status, 200)
      t.equal((await get(tenant, 'small')).bytes.length, 20_000)
      t.equal((await put(tenant, 'new', Buffer.alloc(1000))).status, 200)
      await storage.idle()
      await tenant.request('POST', '/storage/v1/admin/sweep', { as: 'service', body: {} })
      t.equal((await blobs()).length, 3, 'small, new and the copy')
    },
  )

  await t.test('A download continues at its position after the S3 server breaks the connection', async (t) => {
    const size = 12 * megabyte
    const body = randomBytes(size)
    await tenant.request('PATCH', '/storage/v1/bucket/docs', { as: 'u1', body: { max_file_size: 0 } })
    t.equal((await put(tenant, 'long', body)).status, 200)
    const [row] = await tenant.rows("select blob_id::text as id from storage_objects where path = 'long'")
    const blob = await backend.open(tenant.id, String(row?.['id']))
    const hash = createHash('sha256')
    let [bytes, breaks] = [0, 0]
    for await (const chunk of blob?.read(0, size - 1) ?? []) {
      hash.update(chunk)
      bytes += chunk.length
      if (bytes < megabyte || breaks > 0) continue
      breaks++
      await server.kill()
      await server.start()
    }
    t.same([bytes, breaks, hash.digest('hex')], [size, 1, sha256(body)])
  })

  await t.test('A released blob remains for a while, for callers who are reading it', async (t) => {
    const lingering = await startRuntime(t, { backend: new S3Backend(server.settings) })
    const reader = await lingering.addTenant()
    await reader.request('POST', '/storage/v1/bucket', { as: 'u1', body: { name: 'docs' } })
    await put(reader, 'a', Buffer.from('one'))
    await put(reader, 'a', Buffer.from('two'))
    await lingering.storage.idle()
    const files = async () =>
      (await server.keys()).whole.filter((key) => key.startsWith(`here/${reader.id}/blobs/`)).length
    t.equal(await files(), 2)
    await reader.rows("update blob_gc set created_at = now() - interval '16 minutes'")
    await reader.request('POST', '/storage/v1/admin/sweep', { as: 'service', body: {} })
    t.equal(await files(), 1)
  })

  await t.test('Removing the tenant empties its part of the bucket', async (t) => {
    await backend.removeTenant(tenant.id)
    t.same(
      (await server.keys()).whole.filter((key) => key.includes(tenant.id)),
      [],
    )
  })
})

t.test("The image's bundle starts on S3, and reports what it cannot reach", async (t) => {
  const server = await startS3Server()
  const directory = await mkdtemp(join(tmpdir(), 'tenantry-bundle-'))
  t.teardown(async () => {
    await server.stop()
    await rm(directory, { recursive: true, force: true })
  })
  const project = join(import.meta.dirname, '../..')
  for (const { path, ...entry } of await bundleOf(project, 'tenant-runtime', ['src/main.ts'])) {
    const file = join(directory, path)
    await mkdir(dirname(file), { recursive: true })
    if ('content' in entry) await writeFile(file, entry.content)
  }
  const developerConsole = 'console/built/developer'
  await cp(join(project, developerConsole), join(directory, 'app', developerConsole), { recursive: true })
  const token = randomBytes(24).toString('hex')
  await writeFile(join(directory, 'token'), token)
  await writeFile(join(directory, 'secret'), server.settings.secretAccessKey)
  const start = async (bucket: string) => {
    const port = await freePort()
    const child = spawn(process.execPath, [join(directory, 'app/tenant-runtime/src/main.js')], {
      env: {
        PATH: process.env['PATH'],
        TENANTRY_PORT: String(port),
        TENANTRY_CONTROL_URL: 'http://127.0.0.1:1',
        TENANTRY_INTERNAL_TOKEN_FILE: join(directory, 'token'),
        TENANTRY_DATA: directory,
        TENANTRY_LOG_LEVEL: 'silent',
        TENANTRY_STORAGE_BACKEND: 's3',
        TENANTRY_S3_ENDPOINT: server.settings.endpoint,
        TENANTRY_S3_BUCKET: bucket,
        TENANTRY_S3_ACCESS_KEY_ID: server.settings.accessKeyId,
        TENANTRY_S3_SECRET_ACCESS_KEY_FILE: join(directory, 'secret'),
      },
      stdio: ['ignore', 'ignore', 'pipe'],
    })
    const gone = once(child, 'exit')
    t.teardown(() => (child.kill('SIGKILL'), gone))
    let output = ''
    child.stderr.setEncoding('utf8').on('data', (text: string) => (output += text))
    return { port, child, gone, output: () => output }
  }
  const wrong = await start('nowhere')
  await wrong.gone
  t.match(wrong.output(), /The storage can not use the bucket nowhere at http:\S+: NoSuchBucket/)
  t.not(wrong.child.exitCode, 0)

  const right = await start('blobs')
  const deadline = Date.now() + 30_000
  let live = 0
  while (live !== 200 && Date.now() < deadline && right.child.exitCode === null) {
    live = await send(right.port, 'GET', internalPaths.live, { [internalTokenHeader]: token }).then(
      ({ status }) => status,
      () => 0,
    )
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
  t.equal(live, 200, right.output())
})
