// Backups in a bucket of a real S3 server: complete or not there at all, whenever the server or the control plane is killed.
import { randomBytes, randomUUID } from 'node:crypto'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { deleteObject, putText, S3Connection } from '@tenantry/contract/s3'
import type { Backup } from '#control-plane/backups/backup.ts'
import { createDirectoryTarget } from '#control-plane/backups/directory-target.ts'
import { openGoodCopy } from '#control-plane/backups/good-copy.ts'
import { encryptedParts } from '#control-plane/backups/manifest.ts'
import { openFiles } from '#control-plane/backups/parts.ts'
import { createS3Target, partBytes } from '#control-plane/backups/s3-target.ts'
import { surveyBackups } from '#control-plane/backups/survey-backups.ts'
import { systemClock } from '#control-plane/platform/clock.ts'
import { openDump } from '#control-plane/backups/control-database/dump-files.ts'
import { dumpFolder, dumpFolderPrefix, dumpParts } from '#control-plane/backups/control-database/dump-folder.ts'
import { foldersOf, openTarget } from '#control-plane/backups/open-targets.ts'
import { createTargets } from '#control-plane/backups/target-set.ts'
import { startS3Server } from '#test/support/s3-server.ts'
import { chunks, jobOf, leader, log, signal, write } from './support/targets.ts'

const mebibyte = 2 ** 20
/** Sizes that differ, as those of large backups do. */
const growing = (number: number) => (number === 1 ? 5 : 6) * mebibyte

async function readAll(source: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const read: Uint8Array[] = []
  for await (const chunk of source) read.push(chunk)
  return Buffer.concat(read)
}

t.test('the sizes of parts allow backups of hundreds of gigabytes', (t) => {
  let bytes = 0
  for (let number = 1; number <= 10_000; number++) bytes += partBytes(number)
  t.equal(bytes / 2 ** 30, 250)
  t.end()
})

t.test('a bucket', async (t) => {
  const server = await startS3Server()
  t.teardown(() => server.stop())
  const target = createS3Target(server.settings, 'here', 'bucket', { sizeOfPart: growing })
  const connection = new S3Connection(server.settings, { errorOf: (cause) => cause as Error })
  t.teardown(() => connection.close())
  const objects = async (id: string) =>
    (await server.keys()).whole
      .flatMap((key) => (key.includes(id) ? [key.slice(`here/here/${id}/`.length)] : []))
      .sort()
  const survey = async (known: [string, Backup['state']][]) => {
    const states = () => Promise.resolve(new Map(known))
    return (await surveyBackups({ targets: createTargets([target], systemClock), states, log }, new Set())).found
  }

  await t.test('a backup with a large part is stored in parts of growing size, and read back', async (t) => {
    const bytes = randomBytes(17 * mebibyte)
    const backup = await write(target, bytes)
    t.same(await objects(backup.id), ['.committed', 'database', 'files', 'index', 'manifest', 'record'])
    t.same(await target.list(), [{ id: backup.id, content: 'whole', isQuarantined: false }])
    const { files } = await openGoodCopy(jobOf(backup), { targets: createTargets([target], systemClock), log }, signal)
    t.ok((await readAll(files.read('files'))).equals(bytes))
    const sizes = await Promise.all(
      encryptedParts.map(async (part) => (await readAll(target.read(backup.id, part, signal))).length),
    )
    t.equal(
      await target.size(backup.id, encryptedParts),
      sizes.reduce((sum, size) => sum + size),
    )
    t.same(
      await createS3Target(server.settings, 'elsewhere', 'other').list(),
      [],
      'another installation does not list it',
    )
    await t.rejects(target.write(backup.id, 'files', chunks(Buffer.from('x')), signal), { code: 'FAILED' })
    t.same(await survey([[backup.id, 'complete']]), { unknown: 0, missing: 0, uncopied: 0, unavailable: [] })
    await target.remove(backup.id)
    t.same(await server.keys(), { whole: [], begun: [] })
  })

  await t.test('a backup without a commit is not there, and cannot be committed without all parts', async (t) => {
    const id = randomUUID()
    const files = openFiles(target, id, randomBytes(32), signal)
    await files.writeManifest('{}')
    t.same(await target.list(), [{ id, content: 'making', isQuarantined: false }])
    await t.rejects(readAll(target.read(id, 'manifest', signal)), { code: 'INCOMPLETE' })
    t.ok((await readAll(target.readUncommitted(id, 'manifest', signal))).length > 0)
    await t.rejects(files.commit(), { code: 'INCOMPLETE', message: /"database"/ })
    t.equal(await target.size(id, encryptedParts), undefined)
    await survey([[id, 'running']])
    t.same(await objects(id), ['.making', 'manifest'], 'a backup that is being made stays')
    await survey([[id, 'failed']])
    t.same(await server.keys(), { whole: [], begun: [] })
  })

  await t.test('an upload that a killed server has interrupted is aborted by the survey', async (t) => {
    const id = randomUUID()
    async function* interrupted() {
      yield* chunks(randomBytes(12 * mebibyte))
      await server.kill()
      yield* chunks(randomBytes(12 * mebibyte))
    }
    await t.rejects(target.write(id, 'database', interrupted(), signal), { code: 'TARGET_UNAVAILABLE' })
    await t.rejects(target.list(), { code: 'TARGET_UNAVAILABLE' })
    await server.start()
    t.same(await server.keys(), { whole: [`here/here/${id}/.making`], begun: [`here/here/${id}/database`] })
    await survey([[id, 'failed']])
    t.same(await server.keys(), { whole: [], begun: [] })
  })

  await t.test('an error of the content leaves no upload, and is the error of the write', async (t) => {
    const id = randomUUID()
    async function* failing() {
      yield* chunks(randomBytes(6 * mebibyte))
      throw new Error('no more')
    }
    await t.rejects(target.write(id, 'files', failing(), signal), { message: 'no more' })
    t.same((await server.keys()).begun, [])
    await target.discard(id)
  })

  await t.test('an unknown backup is quarantined, and released when it is known', async (t) => {
    const backup = await write(target)
    t.match(await survey([]), { unknown: 1 })
    t.same(await target.list(), [{ id: backup.id, content: 'whole', isQuarantined: true }])
    t.equal(await target.size(backup.id, encryptedParts), undefined)
    t.match((await readAll(target.read(backup.id, 'record', signal))).toString(), backup.id, 'it can be adopted')
    await target.discard(backup.id)
    t.match(await survey([[backup.id, 'complete']]), { unknown: 0, missing: 0 })
    t.same(await target.list(), [{ id: backup.id, content: 'whole', isQuarantined: false }])
    await target.remove(backup.id)
  })

  await t.test('what an interruption leaves at any step is completed or removed', async (t) => {
    const at = (id: string, object: string) => `here/here/${id}/${object}`
    const committed = await write(target)
    await putText(connection, at(committed.id, '.making'), '.making')
    t.match(await survey([[committed.id, 'complete']]), { missing: 0 })
    t.notOk((await objects(committed.id)).includes('.making'), 'the commit is completed')
    // A removal first marks the backup, and then removes the mark of the commit and the parts.
    await putText(connection, at(committed.id, '.removing'), '.removing')
    t.equal(await target.size(committed.id, encryptedParts), undefined)
    await deleteObject(connection, at(committed.id, '.committed'))
    await deleteObject(connection, at(committed.id, 'files'))
    await survey([])
    t.same(await server.keys(), { whole: [], begun: [] })

    const late = await write(target)
    await deleteObject(connection, at(late.id, 'index'))
    t.same(await target.list(), [{ id: late.id, content: 'making', isQuarantined: false }])
    await t.rejects(readAll(target.read(late.id, 'files', signal)), { code: 'INCOMPLETE' }, 'a part is missing')
    await target.remove(late.id)
  })

  await t.test('a backup is copied to the bucket, and restored from it when the first copy is damaged', async (t) => {
    const root = await mkdtemp(join(tmpdir(), 'tenantry-s3-target-'))
    t.teardown(() => rm(root, { recursive: true, force: true }))
    const disk = createDirectoryTarget(root, 'here', 'disk')
    const backup = await write(disk, randomBytes(7 * mebibyte))
    const { targets, copier, survey } = leader([disk, target], new Map([[backup.id, backup]]))
    for (const copy of (await survey()).copies) await copier(copy, signal)
    t.match((await survey()).found, { uncopied: 0 })
    t.same(
      (await targets.copies(backup.id)).map(({ state }) => state),
      ['complete', 'complete'],
    )
    await writeFile(join(root, 'here', backup.id, 'files'), 'damaged')
    t.equal((await openGoodCopy(jobOf(backup), { targets, log }, signal)).manifest.backup_id, backup.id)
    // The bucket's copy lets another target receive a good one.
    await rm(join(root, 'here', backup.id), { recursive: true })
    for (const copy of (await survey()).copies) await copier(copy, signal)
    t.equal(await disk.size(backup.id, encryptedParts), await target.size(backup.id, encryptedParts))
    await targets.remove(backup.id)
    t.same(await server.keys(), { whole: [], begun: [] })
  })

  await t.test('dumps of the control database have parts and folders of their own', async (t) => {
    const config = { name: 'bucket', s3: server.settings }
    const folder = dumpFolder(randomUUID())
    const dumps = await openTarget(config, folder, dumpParts)
    const [key, first, second] = [randomBytes(32), randomUUID(), randomUUID()]
    for (const id of [first, second]) {
      const dump = openDump(dumps, id, key, signal)
      const written = await dump.write('rows', chunks(randomBytes(100)))
      const manifest = {
        format: 1,
        dump_id: id,
        installation: '',
        taken_at: '',
        migrations: [],
        tables: [],
        sequences: [],
      }
      await dump.write('manifest', chunks(Buffer.from(JSON.stringify({ ...manifest, ...written }))))
      if (id === first) await dump.commit()
    }
    t.same(
      (await dumps.list()).map(({ id, content }) => `${id} ${content}`).sort(),
      [`${first} whole`, `${second} making`].sort(),
    )
    t.match(await openDump(dumps, first, key, signal).checkedManifest(), { dump_id: first })
    await t.rejects(openDump(dumps, first, randomBytes(32), signal).checkedManifest(), { code: 'DAMAGED' })
    t.same(await foldersOf(config, dumpFolderPrefix), [folder])
    t.same(await target.list(), [], 'they are no backups of tenants')
    await dumps.discard(second)
    await dumps.remove(first)
    t.same(await server.keys(), { whole: [], begun: [] })
  })

  await t.test('a wrong key and a missing bucket make the target unavailable', async (t) => {
    for (const wrong of [{ secretAccessKey: 'wrong' }, { bucket: 'none' }]) {
      const other = createS3Target({ ...server.settings, ...wrong }, 'here', 'other')
      const error = { code: 'TARGET_UNAVAILABLE', message: /"other"/ }
      await t.rejects(other.list(), error)
      await t.rejects(other.write(randomUUID(), 'files', chunks(Buffer.from('x')), signal), error)
    }
  })
})
