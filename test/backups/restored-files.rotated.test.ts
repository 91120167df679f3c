// A restore into the tenant that the backup is of: which files it writes to the shared runtime, and which it rejects.
import { randomBytes } from 'node:crypto'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { startPlatform } from '#test/support/platform.ts'
import { query } from '#test/support/postgres.ts'
import { until } from '#test/support/until.ts'

t.test('a restore in place writes each file that the runtime lacks, and rejects another one of its name', async (t) => {
  const directory = await mkdtemp(join(tmpdir(), 'tenantry-restored-files-'))
  const platform = await startPlatform({ control: { TENANTRY_BACKUPS: directory } })
  t.teardown(async () => {
    await platform.stop()
    await rm(directory, { recursive: true, force: true })
  })
  await platform.startControlPlane()
  const operation = async (path: string, body?: unknown) => {
    const { body: begun } = await platform.call('POST', path, body, { prefer: 'wait=60' })
    const { id } = begun['operation'] as { id: string }
    let ended: Record<string, unknown> = {}
    await until(async () => {
      ended = (await platform.call('GET', `/v1/operations/${id}`)).body
      return ['succeeded', 'failed'].includes(String(ended['state']))
    })
    return { id: String(begun['id']), ended }
  }
  const created = await platform.call(
    'POST',
    '/v1/tenants',
    { name: 'ada', plan: 'Free', region: 'local' },
    { prefer: 'wait=30' },
  )
  const id = String(created.body['tenant_id'])
  const { secret_key: key = '' } = created.body['keys'] as Record<string, string>
  for (const [name, bytes] of [
    ['a.bin', randomBytes(100_000)],
    ['empty.bin', Buffer.alloc(0)],
    ['b.bin', randomBytes(3_000_000)],
  ] as const) {
    const path = `/storage/v1/object/system/${name}`
    const upload = { key, body: bytes, type: 'application/octet-stream' }
    t.equal((await platform.tenantCall('ada', 'POST', path, upload)).status, 200)
  }
  const backup = await operation(`/v1/tenants/${id}/backups`)
  t.match(backup.ended, { state: 'succeeded' })
  const restore = async () => (await operation(`/v1/backups/${backup.id}/restore`, { into: 'same' })).ended
  t.match(await restore(), { state: 'succeeded', error: null }, 'the runtime has every file')

  const stored = await query(
    platform.postgres.url(platform.homesDatabase),
    `select blob_id::text as id from ${id}.storage_objects order by blob_id`,
  )
  t.equal(stored.length, 3)
  for (const { id: blob } of stored) {
    const path = join(platform.blobs, id, String(blob).slice(0, 2), String(blob))
    const bytes = await readFile(path)
    await rm(path)
    t.match(await restore(), { state: 'succeeded', error: null })
    t.same(await readFile(path), bytes)
    if (bytes.length === 0) continue
    await writeFile(path, Buffer.from(bytes).reverse())
    t.match(await restore(), { state: 'failed', error: /another file of the name/ })
    await writeFile(path, bytes)
  }
})
