// Verification detects backups that changed on disk, and a restore detects a copy that differs from its backup.
import { randomUUID } from 'node:crypto'
import { readFile, truncate, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { extract, pack } from 'tar-stream'
import t from 'tap'
import { createDirectoryTarget } from '#control-plane/backups/directory-target.ts'
import { manifestHash, type Manifest, type Part } from '#control-plane/backups/manifest.ts'
import { openFiles } from '#control-plane/backups/parts.ts'
import { createSeal } from '#control-plane/platform/seal.ts'
import { query } from '#test/support/postgres.ts'
import { until } from '#test/support/until.ts'
import {
  createOwner,
  ended,
  filesBelow,
  furnish,
  scratchObjects,
  seen,
  startBackupPlatform,
  type BackupPlatform,
} from './support/tenants.ts'

const megabyte = 2 ** 20

t.test('backups and damage', async (t) => {
  const platform = await startBackupPlatform(t)
  const ada = await createOwner(platform, 'ada')
  await furnish(platform, ada, 4 * megabyte)
  const before = await seen(platform, ada)
  const taken = await platform.call('POST', `/v1/tenants/${ada.id}/backups`)
  const backupId = String(taken.body['id'])
  t.match(await ended(platform, taken), { state: 'succeeded' })
  const verify = async () => ended(platform, await platform.call('POST', `/v1/backups/${backupId}/verify`))

  t.test('a verification detects a flipped bit and a truncated part', async (t) => {
    for (const part of ['database', 'files', 'index', 'manifest']) {
      const file = join(platform.directory, backupId, part)
      const whole = await readFile(file)
      const flipped = Buffer.from(whole)
      const at = Math.floor(whole.length * 0.7)
      flipped[at] = (flipped[at] ?? 0) ^ 1
      await writeFile(file, flipped)
      t.match(
        await verify(),
        { state: 'failed', error: new RegExp(`"${part}" of the backup is damaged`) },
        `${part}: a flipped bit`,
      )
      t.match(await platform.call('GET', `/v1/backups/${backupId}`), {
        body: { verified: String, verify_error: new RegExp(part) },
      })
      await writeFile(file, whole)
      await truncate(file, whole.length - 17)
      t.match(await verify(), { state: 'failed', error: /damaged/ }, `${part}: truncated`)
      await writeFile(file, whole)
    }
    t.match(await verify(), { state: 'succeeded' }, 'the unchanged backup is valid')
    t.match(await platform.call('GET', `/v1/backups/${backupId}`), { body: { verify_error: null } })
  })

  t.test('a verification and a restore detect a copy that differs from the manifest', async (t) => {
    const rewritten = await rewriteBackup(platform, backupId)
    await rewritten.write(
      (entry) => entry.startsWith('store') || !entry.endsWith(rewritten.lastBlob),
      (manifest) => manifest,
    )
    t.match(await verify(), { state: 'failed', error: `the file ${rewritten.lastBlob} is missing` })
    const [notes] = rewritten.manifest.home.tables.filter(({ name }) => name === 'notes')
    await rewritten.write(
      () => true,
      (manifest) => ({
        ...manifest,
        home: {
          ...manifest.home,
          tables: manifest.home.tables.map((table) => (table === notes ? { ...table, hash: 'other' } : table)),
        },
      }),
    )
    t.match(await verify(), { state: 'failed', error: /the content of the table "notes" differs/ })
    await rewritten.write(
      () => true,
      (manifest) => ({
        ...manifest,
        home: {
          ...manifest.home,
          objects: manifest.home.objects.map((kind) =>
            kind.kind === 'policy' ? { ...kind, count: kind.count + 1 } : kind,
          ),
        },
      }),
    )
    t.match(await verify(), { state: 'failed', error: /objects of the kind "policy"/ })

    const rejected = await platform.call('POST', `/v1/backups/${backupId}/restore`, { into: { name: 'half' } })
    t.match(await ended(platform, rejected), { state: 'failed', error: /"policy"/ })
    const { tenant_id: half } = rejected.body
    await untilGone(platform, String(half))
    const { containers, volumes } = await platform.host.observe(
      { installation: platform.installation, stack: String(half) },
      AbortSignal.timeout(10_000),
    )
    t.same([...containers, ...volumes], [], 'nothing of the failed tenant remains')
    t.match(await ended(platform, await platform.call('POST', `/v1/backups/${backupId}/restore`, { into: 'same' })), {
      state: 'failed',
      error: /"policy"/,
    })
    t.same(await seen(platform, ada), before, 'the old data stays when the restored copy differs')

    await rewritten.write(
      () => true,
      (manifest) => manifest,
    )
    t.match(await verify(), { state: 'succeeded' })
    t.same(await scratchObjects(platform), [])
  })

  t.test('an object without its file fails the backup, with the reason', async (t) => {
    const lost = randomUUID()
    await query(
      ada.url,
      `insert into storage_objects (bucket_id, path, blob_id, size, content_type, etag)
        select id, 'without-file', '${lost}', 1, 'text/plain', 'x' from storage_buckets where name = 'papers'`,
    )
    const response = await platform.call('POST', `/v1/tenants/${ada.id}/backups`)
    t.match(await ended(platform, response), { state: 'failed', error: /of an object is missing/ })
    t.match(await platform.call('GET', `/v1/backups/${String(response.body['id'])}`), {
      body: { state: 'failed', error: /missing/ },
    })
    t.same(
      [...(await filesBelow(platform.directory)).keys()].filter((file) => !file.includes(backupId)),
      [],
      'no partial backup remains',
    )
    await query(ada.url, "delete from storage_objects where path = 'without-file'")
  })
})

async function untilGone(platform: BackupPlatform, tenantId: string): Promise<void> {
  await until(async () => (await platform.call('GET', `/v1/tenants/${tenantId}`)).status === 404)
}

/** Rewrites a backup with its own key, as a faulty writer would have written it. */
async function rewriteBackup(platform: BackupPlatform, backupId: string) {
  const [, masterKey = ''] = await platform.secretTexts()
  const [row] = await platform.sql('select key, manifest_hash from backups where id = $1', [backupId])
  const key = Buffer.from(
    createSeal(Buffer.from(masterKey, 'base64')).open(row?.['key'] as Uint8Array, `backup:${backupId}`),
    'base64',
  )
  const [root, installation] = [join(platform.directory, '..'), platform.installation]
  const target = createDirectoryTarget(root, installation)
  const signal = new AbortController().signal
  const files = openFiles(target, backupId, key, signal)
  const manifest = await files.readManifest(String(row?.['manifest_hash']))
  const whole = {
    database: await bytesOf(files.read('database')),
    files: await bytesOf(files.read('files')),
    index: await bytesOf(files.read('index')),
  }
  return {
    manifest,
    lastBlob: whole.index.toString().trim().split('\n').at(-1)?.slice(0, 36) ?? '',
    async write(keeps: (entry: string) => boolean, change: (manifest: Manifest) => Manifest) {
      const archive = await without(whole.files, keeps)
      await target.remove(backupId)
      const parts: Part[] = []
      for (const [name, bytes] of [
        ['database', whole.database],
        ['files', archive],
        ['index', whole.index],
      ] as const)
        parts.push(await files.write(name, once(bytes)))
      const text = JSON.stringify(change({ ...manifest, parts }))
      await files.writeManifest(text)
      await files.commit()
      await platform.sql('update backups set manifest_hash = $1 where id = $2', [manifestHash(text), backupId])
    },
  }
}

async function* once(bytes: Uint8Array) {
  yield bytes
}

async function bytesOf(source: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const chunks: Uint8Array[] = []
  for await (const chunk of source) chunks.push(chunk)
  return Buffer.concat(chunks)
}

async function without(archive: Buffer, keeps: (entry: string) => boolean): Promise<Buffer> {
  const reader = extract()
  const writer = pack()
  const written = bytesOf(writer as AsyncIterable<Buffer>)
  reader.end(archive)
  for await (const entry of reader) {
    const bytes = await bytesOf(entry as AsyncIterable<Buffer>)
    if (keeps(entry.header.name)) writer.entry({ name: entry.header.name, mode: 0o600 }, bytes)
  }
  writer.finalize()
  return written
}
