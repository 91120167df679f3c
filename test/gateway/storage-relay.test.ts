// The storage relay with a real S3 server: a tenant's runtime reads and writes the tenant's files, and no others.
import { randomBytes, randomUUID } from 'node:crypto'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { Readable } from 'node:stream'
import { text } from 'node:stream/consumers'
import t, { type Test } from 'tap'
import { tenantToken } from '@tenantry/contract'
import { defaultLimits } from '#gateway/limits.ts'
import { authorizationOf } from '#gateway/storage-relay/signature.ts'
import { StorageRelay } from '#gateway/storage-relay/storage-relay.ts'
import { isTenantsRequest } from '#gateway/storage-relay/tenants-request.ts'
import { S3Backend } from '#tenant-runtime/storage/backend/s3.ts'
import { startS3Server, type S3Server } from '#test/support/s3-server.ts'

const internalToken = { sent: 'n'.repeat(43), accepted: ['n'.repeat(43), 'o'.repeat(43)] }
const [ada, bob] = ['t_0123456789abcdef0123', 't_fedcba98765432100123']
const emptyHash = 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855'

async function openRelay(t: Test, server: S3Server, changes = {}) {
  const { endpoint = '', region, bucket, prefix, accessKeyId, secretAccessKey } = server.settings
  const rejected: string[] = []
  const relay = new StorageRelay({
    bucket: { endpoint: new URL(endpoint), region, bucket, prefix, isPathStyle: true, accessKeyId, secretAccessKey },
    internalToken,
    limits: { ...defaultLimits, ...changes },
    now: Date.now,
    onRejected: (tenantId) => rejected.push(tenantId),
  })
  relay.server.listen(0, '127.0.0.1')
  await once(relay.server, 'listening')
  t.teardown(() => relay.close())
  return { endpoint: `http://127.0.0.1:${(relay.server.address() as AddressInfo).port}`, rejected }
}

const server = await startS3Server()
t.teardown(() => server.stop())
const { bucket, prefix, region } = server.settings

/** Sends a request that is signed with a tenant's token. */
async function send(
  endpoint: string,
  tenantId: string,
  method: string,
  path: string,
  changes: { token?: string; time?: string; headers?: Record<string, string> } = {},
): Promise<{ status: number; text: string }> {
  const time = changes.time ?? new Date().toISOString().replace(/[-:]|\.\d{3}/g, '')
  const headers = { host: new URL(endpoint).host, 'x-amz-content-sha256': emptyHash, 'x-amz-date': time }
  const token = tenantToken(changes.token ?? internalToken.sent, tenantId)
  const authorization = authorizationOf(
    { method, url: path, headers, payloadHash: emptyHash, time, region },
    tenantId,
    token,
  )
  const { host: _host, ...sent } = headers
  const response = await fetch(endpoint + path, { method, headers: { ...sent, ...changes.headers, authorization } })
  return { status: response.status, text: await response.text() }
}

t.test("A runtime's store works through the relay, large files included", async (t) => {
  const { endpoint, rejected } = await openRelay(t, server)
  const backend = new S3Backend({
    ...server.settings,
    endpoint,
    accessKeyId: ada,
    secretAccessKey: tenantToken(internalToken.sent, ada),
  })
  await backend.start()
  const store = await backend.claimStore(ada, 'store-1')
  t.equal(await backend.storeId(ada), store)
  const bytes = randomBytes(12_000_000)
  const [small, large] = [randomUUID(), randomUUID()]
  await backend.put(ada, small, Readable.from([Buffer.from('hello')]), 100)
  t.match(await backend.put(ada, large, Readable.from([bytes]), 2 ** 30), { size: bytes.length })
  const opened = await backend.open(ada, small)
  t.equal(await text(opened?.stream(0, 4) ?? Readable.from([])), 'hello')
  t.ok((await (await backend.open(ada, large))?.whole(bytes.length))?.equals(bytes))
  const listed = []
  for await (const { blobId } of backend.list(ada)) listed.push(blobId)
  t.same(listed.sort(), [small, large].sort())
  await backend.remove(ada, small)
  t.equal(await backend.open(ada, small), undefined)
  await backend.removeTenant(ada)
  t.same(
    (await server.keys()).whole.filter((key) => key.includes(ada)),
    [],
  )
  t.same(rejected, [])
})

t.test("No request reaches another tenant's files", async (t) => {
  const { endpoint, rejected } = await openRelay(t, server)
  const secret = `/${bucket}/${prefix}${bob}/blobs/${'c'.repeat(32)}`
  t.equal((await send(endpoint, bob, 'PUT', secret)).status, 200)
  const own = `/${bucket}/${prefix}${ada}`
  for (const [method, path, headers] of [
    ['GET', secret],
    ['DELETE', secret],
    ['GET', `/${bucket}?list-type=2&prefix=${prefix}`],
    ['GET', `/${bucket}?list-type=2`],
    ['GET', `/${bucket}?list-type=2&prefix=${encodeURIComponent(`${prefix}${bob}/`)}`],
    [
      'GET',
      `/${bucket}?list-type=2&prefix=${encodeURIComponent(`${prefix}${ada}/`)}&prefix=${encodeURIComponent(prefix)}`,
    ],
    ['GET', `/${bucket}?acl&prefix=${encodeURIComponent(`${prefix}${ada}/`)}`],
    ['POST', `/${bucket}?delete`],
    ['DELETE', `/${bucket}`],
    ['PUT', `${own}/blobs/x`, { 'x-amz-copy-source': secret }],
    ['PUT', `${own}/blobs/x?acl`],
    ['GET', `/other/${prefix}${ada}/blobs/x`],
    ['GET', '/'],
  ] as const) {
    const { status, text } = await send(endpoint, ada, method, path, headers === undefined ? {} : { headers })
    t.match({ status, text }, { status: 403, text: /AccessDenied/ }, `${method} ${path}`)
  }
  t.equal(new Set(rejected).size, 1)
  t.equal((await send(endpoint, bob, 'GET', secret)).status, 200, 'it is still there')
})

t.test('Only a signature with the token of the tenant is accepted, for fifteen minutes', async (t) => {
  const { endpoint } = await openRelay(t, server)
  const path = `/${bucket}/${prefix}${ada}/store`
  t.equal((await send(endpoint, ada, 'GET', path)).status, 404)
  t.equal((await send(endpoint, ada, 'GET', path, { token: 'o'.repeat(43) })).status, 404, 'during a rotation')
  t.equal((await send(endpoint, ada, 'GET', path, { token: 'x'.repeat(43) })).status, 403)
  t.equal((await send(endpoint, ada, 'GET', path, { time: '20260101T000000Z' })).status, 403)
  t.equal((await send(endpoint, 'nobody', 'GET', path)).status, 403)
  t.equal((await fetch(endpoint + path)).status, 403)
})

t.test('A tenant has at most its share of simultaneous requests', async (t) => {
  const { endpoint } = await openRelay(t, server, { storageRequestsPerTenant: 0 })
  t.match(await send(endpoint, ada, 'GET', `/${bucket}/${prefix}${ada}/store`), { status: 503, text: /SlowDown/ })
})

t.test('A server that does not respond is an error that the runtime repeats', async (t) => {
  const { endpoint } = await openRelay(t, {
    settings: { ...server.settings, endpoint: 'http://127.0.0.1:1' },
  } as S3Server)
  t.match(await send(endpoint, ada, 'GET', `/${bucket}/${prefix}${ada}/store`), { status: 503 })
})

t.test('The check of a request is about its decoded path', (t) => {
  const part = { bucket: 'b', prefix: 'p/' }
  const is = (method: string, url: string) => isTenantsRequest({ method, url, headers: {} }, part, ada)
  t.ok(is('GET', `/b/p/${ada}/blobs/x`))
  t.ok(is('PUT', `/b/p%2F${ada}%2Fblobs%2Fx?x-id=PutObject`))
  t.notOk(is('GET', `/%62/p/${ada}/x`), 'an encoded bucket')
  t.notOk(is('GET', `/b%2Fp/${ada}/x`))
  t.notOk(is('GET', `/b?list-type=2&prefix=p%2F${ada}%2F?&prefix=p%2F${bob}%2F`), 'two queries')
  t.ok(is('PUT', '/b/p/probe-00000000-0000-0000-0000-000000000000'))
  t.ok(is('GET', `/b/?list-type=2&prefix=p%2F${ada}%2Fblobs%2F`))
  t.notOk(is('GET', `/b/p/${ada}`), 'a key that only begins like the tenant')
  t.notOk(is('GET', `/b/p/${ada}x/blobs`))
  t.notOk(is('GET', `/bb/p/${ada}/x`))
  t.notOk(is('GET', `/b/p/${ada}/%`), 'not encoded')
  for (const up of ['..', '%2e%2e', '.%2E']) t.notOk(is('GET', `/b/p/${ada}/${up}/${bob}/blobs/x`), up)
  t.notOk(is('PATCH', `/b/p/${ada}/x`))
  t.end()
})
