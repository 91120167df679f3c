// A tenant whose files are in S3 moves into services of its own, whose files are on a volume, and back, and to a region with the same
// bucket and back.
import { randomUUID } from 'node:crypto'
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { startS3Server } from '#test/support/s3-server.ts'
import { until } from '#test/support/until.ts'
import { ownServices, startInstalled } from './support/installed.ts'
import { beginIsolation, isolate, relocate } from './support/isolation.ts'
import { otherRegion, startOtherRegion } from '#test/support/other-region.ts'
import { createOwner, ended } from './support/platform.ts'

t.test(
  'Files leave S3 and return with their tenant, and stay in a bucket of two regions',
  { timeout: 900_000 },
  async (t) => {
    const server = await startS3Server()
    const directory = await mkdtemp(join(tmpdir(), 'tenantry-s3-'))
    // The runtimes run as other users.
    await chmod(directory, 0o755)
    t.teardown(async () => {
      await server.stop()
      await rm(directory, { recursive: true })
    })
    const { endpoint = '', bucket, prefix, accessKeyId, secretAccessKey } = server.settings
    const secretFile = join(directory, 'secret')
    await writeFile(secretFile, secretAccessKey)
    const store = {
      TENANTRY_STORAGE_BACKEND: 's3',
      TENANTRY_S3_ENDPOINT: endpoint,
      TENANTRY_S3_BUCKET: bucket,
      TENANTRY_S3_PREFIX: prefix,
      TENANTRY_S3_ACCESS_KEY_ID: accessKeyId,
      TENANTRY_S3_SECRET_ACCESS_KEY_FILE: secretFile,
    }
    const platform = await startInstalled(t, store)
    await startOtherRegion(t, platform, { environment: { TENANTRY_REGION: otherRegion, ...store } })
    const owner = await createOwner(platform, 'ada')
    const send = (method: string, path: string, body?: string) =>
      platform.tenantCall(owner.name, method, `/storage/v1/${path}`, {
        key: owner.key,
        ...(body === undefined ? {} : { body, type: path === 'bucket' ? 'application/json' : 'text/plain' }),
      })
    t.equal((await send('POST', 'bucket', '{"name":"files"}')).status, 201)
    const stored = new Map<string, string>()
    const upload = async () => {
      const [path, text] = [randomUUID(), randomUUID()]
      t.equal((await send('POST', `object/files/${path}`, text)).status, 200)
      stored.set(path, text)
    }
    const blobs = async () => (await server.keys()).whole.filter((key) => key.includes(`${owner.id}/blobs/`)).sort()
    const checkFiles = async (what: string, inBucket: boolean) => {
      for (const [path, text] of stored) t.equal(await (await send('GET', `object/files/${path}`)).text(), text, what)
      t.equal((await blobs()).length, inBucket ? stored.size : 0, `${what}: each is stored once`)
    }
    await upload()

    for (const isolation of ['database-per-tenant', 'schema-per-tenant'] as const) {
      t.match(await isolate(platform, owner, isolation), { state: 'succeeded', error: null })
      await checkFiles(`with ${isolation}`, isolation === 'schema-per-tenant')
      await upload()
    }
    t.same(await ownServices(platform, owner), [])

    const canceled = await beginIsolation(platform, owner.id)
    await until(async () => (await ownServices(platform, owner)).length > 0, 'the services')
    await platform.call('POST', `/v1/operations/${canceled}/cancel`)
    t.match(await ended(platform, canceled), { state: 'failed' })
    await checkFiles('after a canceled move', true)

    const before = await blobs()
    for (const region of [otherRegion, 'local']) {
      t.match(await relocate(platform, owner, { region }), { state: 'succeeded', error: null })
      await checkFiles(`in the region ${region}`, true)
    }
    t.same(await blobs(), before, 'no file was copied or removed')
  },
)
