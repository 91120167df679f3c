// The files of archives in directories and in a bucket of a real S3 server: whole or not there, in every target that responds,
// and gone when they are removed.
import { randomBytes, randomUUID } from 'node:crypto'
import { mkdtemp, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { buffer } from 'node:stream/consumers'
import t, { type Test } from 'tap'
import { createArchiveBucket } from '#control-plane/backups/archive/archive-bucket.ts'
import { createArchiveFiles } from '#control-plane/backups/archive/archive-files.ts'
import { expire, removeArchive } from '#control-plane/backups/archive/archive-tenant.ts'
import { baseFile, fileContext } from '#control-plane/backups/archive/file-names.ts'
import { createArchiveDirectory, type ArchiveTarget } from '#control-plane/backups/archive/archive-target.ts'
import type { Archive } from '#control-plane/backups/archive/archive.ts'
import { createArchiveCopier } from '#control-plane/backups/archive/copy-archives.ts'
import { createS3Target } from '#control-plane/backups/s3-target.ts'
import { encrypted } from '#control-plane/backups/encrypted-stream.ts'
import { systemClock } from '#control-plane/platform/clock.ts'
import { startS3Server } from '#test/support/s3-server.ts'
import { chunks, signal } from './support/targets.ts'

const installation = randomUUID()
const mebibyte = 2 ** 20
const key = randomBytes(32)
const segment = (number: number) => `0000000100000000000000${number.toString(16).toUpperCase().padStart(2, '0')}`

async function directoryTarget(t: Test, name: string) {
  const directory = await mkdtemp(join(tmpdir(), `tenantry-${name}-`))
  t.teardown(() => rm(directory, { recursive: true, force: true }))
  const target = createArchiveDirectory(directory, installation, name)
  return { directory, target, files: join(directory, installation, 'archives') }
}

/** An archive whose files are `base` and the segments from 1 to `last`. */
function archiveOf(id: string, base: string | undefined, last: number): Archive {
  const completeAt = new Date()
  return {
    id,
    tenantId: 't_0123456789abcdef0123',
    state: 'open',
    firstSegment: segment(1),
    lastSegment: segment(last),
    latest: completeAt,
    bytes: 0,
    error: undefined,
    createdAt: completeAt,
    bases:
      base === undefined
        ? []
        : [{ id: base, startSegment: segment(1), stopSegment: segment(1), completeAt, createdAt: completeAt }],
  }
}

/** A ledger of archives in memory, as far as files are concerned. */
function ledgerOf(archives: Archive[]) {
  return {
    key: () => Promise.resolve(key),
    stored: () => Promise.resolve([...archives]),
    isStored: (id: string) => Promise.resolve(archives.some((archive) => archive.id === id)),
  }
}

const sealed = (archiveId: string, name: string, bytes: Uint8Array) =>
  encrypted(chunks(bytes), key, fileContext(archiveId, name))

async function* broken(bytes: Uint8Array): AsyncGenerator<Uint8Array, undefined> {
  yield* chunks(bytes)
  throw new Error('The source ended.')
}

t.test('files in one target', async (t) => {
  const server = await startS3Server()
  t.teardown(() => server.stop())
  const { target: directory } = await directoryTarget(t, 'directory')
  const bucket = createArchiveBucket(server.settings, installation, 'bucket')

  for (const target of [directory, bucket])
    await t.test(`${target.name}: a file is whole or not there`, async (t) => {
      const [archiveId, base] = [randomUUID(), baseFile(randomUUID())]
      // Larger than two parts of an upload; a segment that cannot be compressed is larger than one.
      const contents = new Map([
        [base, randomBytes(40 * mebibyte)],
        [segment(1), randomBytes(17 * mebibyte)],
        [segment(2), Buffer.from('small')],
      ])
      for (const [name, bytes] of contents) {
        t.notOk(await target.has(archiveId, name))
        await t.rejects(target.write(archiveId, name, broken(bytes), signal), { message: 'The source ended.' })
        t.notOk(await target.has(archiveId, name), `${name} after an interrupted write`)
        await t.rejects(buffer(target.read(archiveId, name, signal)), { code: 'INCOMPLETE' })
        t.equal(await target.write(archiveId, name, chunks(bytes), signal), bytes.length)
        t.ok(await target.has(archiveId, name))
        t.ok((await buffer(target.read(archiveId, name, signal))).equals(bytes), name)
      }
      t.same(
        (await target.names(archiveId)).filter((name) => !name.endsWith('.new')).sort(),
        [...contents.keys()].sort(),
      )
      t.notOk(await target.has(archiveId, segment(1).slice(0, -1)), 'the beginning of a name')
      t.notOk(await target.has(randomUUID(), segment(1)), 'another archive')
      t.equal(await target.remove(archiveId, segment(2)), 5)
      t.equal(await target.remove(archiveId, segment(2)), 0, 'a missing file')
      t.notOk(await target.has(archiveId, segment(2)))
      await target.removeAll(archiveId)
      await target.removeAll(archiveId)
      t.same(await target.names(archiveId), [])
    })

  await t.test('an upload that the control plane did not end is removed with the archive', async (t) => {
    const archiveId = randomUUID()
    const stop = new AbortController()
    async function* stuck() {
      yield* chunks(randomBytes(40 * mebibyte))
      stop.abort()
      await new Promise(() => undefined)
    }
    void bucket.write(archiveId, baseFile('interrupted'), stuck(), signal)
    await new Promise((resolve) => stop.signal.addEventListener('abort', resolve))
    t.equal((await server.keys()).begun.length, 1)
    t.same(await bucket.names(archiveId), [`${baseFile('interrupted')}.new`])
    await bucket.removeAll(archiveId)
    t.same(await server.keys(), { whole: [], begun: [] })
  })

  await t.test('an upload that a killed server has interrupted ends when the file is written again', async (t) => {
    const archiveId = randomUUID()
    async function* interrupted() {
      yield* chunks(randomBytes(40 * mebibyte))
      await server.kill()
      yield* chunks(randomBytes(mebibyte))
    }
    const unavailable = { code: 'TARGET_UNAVAILABLE' }
    await t.rejects(bucket.write(archiveId, baseFile('again'), interrupted(), signal), unavailable)
    await server.start()
    t.equal((await server.keys()).begun.length, 1)
    await bucket.write(archiveId, baseFile('again'), chunks(randomBytes(mebibyte)), signal)
    t.same((await server.keys()).begun, [])
    t.same(await bucket.names(archiveId), [baseFile('again')])
    await bucket.removeAll(archiveId)
  })

  await t.test('archives are not listed as backups', async (t) => {
    await bucket.write(randomUUID(), segment(1), chunks(Buffer.from('x')), signal)
    t.same(await createS3Target(server.settings, installation, 'bucket').list(), [])
  })

  await t.test('a server that does not respond is named', async (t) => {
    await server.kill()
    const unavailable = { code: 'TARGET_UNAVAILABLE', message: /"bucket"/ }
    await t.rejects(bucket.write(randomUUID(), segment(1), chunks(Buffer.from('x')), signal), unavailable)
    await t.rejects(bucket.names(randomUUID()), unavailable)
    await t.rejects(bucket.has(randomUUID(), segment(1)), unavailable)
    await server.start()
  })
})

t.test('files in several targets', async (t) => {
  const server = await startS3Server()
  t.teardown(() => server.stop())
  const one = await directoryTarget(t, 'one')
  const two = createArchiveBucket(server.settings, installation, 'two')
  const files = createArchiveFiles([one.target, two], systemClock)
  const away = `${one.directory}-away`
  const opening = (archiveId: string, name: string) => ({ key, context: fileContext(archiveId, name) })
  const read = async (archiveId: string, name: string) =>
    (await buffer(files.read(archiveId, name, opening(archiveId, name), signal))).toString()
  const write = (archiveId: string, name: string, text: string) =>
    files.write(archiveId, name, () => sealed(archiveId, name, Buffer.from(text)), signal)
  const namesOf = async (target: ArchiveTarget, archiveId: string) => (await target.names(archiveId)).sort()

  await t.test('an outage of the first target delays nothing, and both get everything', async (t) => {
    const [id, base] = [randomUUID(), randomUUID()]
    const archive = archiveOf(id, base, 4)
    const copyTo = createArchiveCopier({ ledger: ledgerOf([archive]), files, clock: systemClock })
    await write(id, baseFile(base), 'base')
    await write(id, segment(1), 'content 1')
    t.same(await namesOf(two, id), [], 'a file is written once, and copied later')
    await rename(one.directory, away)
    await write(id, segment(2), 'content 2')
    await write(id, segment(3), 'content 3')
    await t.rejects(copyTo(one.target, signal), { code: 'TARGET_UNAVAILABLE' })
    await t.rejects(copyTo(two, signal), 'the base backup is in a target that is away')
    t.same(await files.names(id), [segment(2), segment(3)])
    await rename(away, one.directory)
    await write(id, segment(4), 'content 4')
    await copyTo(one.target, signal)
    await copyTo(two, signal)
    const all = [1, 2, 3, 4].map(segment).concat(baseFile(base))
    t.same(await namesOf(one.target, id), all)
    t.same(await namesOf(two, id), all)
    for (const number of [1, 2, 3, 4]) t.equal(await read(id, segment(number)), `content ${number}`)
    await rename(one.directory, away)
    t.equal(await read(id, baseFile(base)), 'base', 'each target has everything')
    for (const number of [1, 2, 3, 4]) t.equal(await read(id, segment(number)), `content ${number}`)
    await rename(away, one.directory)
    await server.kill()
    t.equal(await read(id, segment(4)), 'content 4')
    await server.start()
  })

  await t.test('a damaged copy is neither used nor copied', async (t) => {
    const id = randomUUID()
    const archive = archiveOf(id, undefined, 2)
    const copyTo = createArchiveCopier({ ledger: ledgerOf([archive]), files, clock: systemClock })
    for (const number of [1, 2]) await write(id, segment(number), `content ${number}`)
    const damage = async (number: number) => {
      const path = join(one.files, id, segment(number))
      const bytes = await readFile(path)
      bytes[bytes.length - 1] = (bytes.at(-1) ?? 0) ^ 1
      await writeFile(path, bytes)
    }
    await damage(2)
    await t.rejects(copyTo(two, signal), { code: 'DAMAGED' })
    t.same(await namesOf(two, id), [segment(1)])
    await t.rejects(read(id, segment(2)), { code: 'DAMAGED' })
    await damage(1)
    t.equal(await read(id, segment(1)), 'content 1', 'the other copy is whole')
  })

  await t.test('a target that has lost files gets them again', async (t) => {
    const id = randomUUID()
    const ledger = ledgerOf([archiveOf(id, undefined, 2)])
    const copyTo = createArchiveCopier({ ledger, files, clock: systemClock })
    for (const number of [1, 2]) await write(id, segment(number), `content ${number}`)
    await copyTo(two, signal)
    await two.removeAll(id)
    await createArchiveCopier({ ledger, files, clock: systemClock })(two, signal)
    t.same(await namesOf(two, id), [1, 2].map(segment))
  })

  await t.test('a file that no target has delays neither the segments of its archive nor other archives', async (t) => {
    const [first, second] = [randomUUID(), randomUUID()]
    const [lost, whole] = [randomUUID(), randomUUID()]
    const archives = [archiveOf(first, lost, 2), archiveOf(second, whole, 1)]
    const stored = [
      [first, segment(1)],
      [first, segment(2)],
      [second, baseFile(whole)],
      [second, segment(1)],
    ] as const
    for (const [id, name] of stored) await one.target.write(id, name, sealed(id, name, Buffer.from(name)), signal)
    const copyTo = createArchiveCopier({ ledger: ledgerOf(archives), files, clock: systemClock })
    await t.rejects(copyTo(two, signal), {
      message: `No target has the file ${baseFile(lost)} of the archive ${first}.`,
    })
    for (const [id, name] of stored) t.ok(await two.has(id, name), name)
    await one.target.write(first, baseFile(lost), sealed(first, baseFile(lost), Buffer.from('found')), signal)
    await copyTo(two, signal)
    t.ok(await two.has(first, baseFile(lost)), 'it is copied when it is there again')
  })

  await t.test('a target without room does not end the archive', async (t) => {
    const id = randomUUID()
    const full: ArchiveTarget = {
      ...one.target,
      name: 'full',
      write: (archiveId, name) => one.target.write(archiveId, name, fullDisk(), signal),
    }
    const rest = createArchiveFiles([full, two], systemClock)
    await rest.write(id, segment(1), () => sealed(id, segment(1), Buffer.from('content 1')), signal)
    t.same(await namesOf(two, id), [segment(1)])
    const none = createArchiveFiles([full], systemClock)
    await t.rejects(
      none.write(id, segment(2), () => sealed(id, segment(2), Buffer.from('content 2')), signal),
      { code: 'DISK_FULL', message: /"one"/ },
    )
  })

  await t.test('an archive is removed from all targets, also one that was away, and does not come back', async (t) => {
    const id = randomUUID()
    const stored = [archiveOf(id, undefined, 2)]
    const copyTo = createArchiveCopier({ ledger: ledgerOf(stored), files, clock: systemClock })
    for (const number of [1, 2]) await write(id, segment(number), `content ${number}`)
    await copyTo(two, signal)
    const rows: string[] = []
    const ledger = {
      markRemoving: async () => void rows.push('removing'),
      remove: async () => void rows.push('removed'),
    } as never
    const deps = { ledger, files, clock: systemClock, epoch: 1n }
    await rename(one.directory, away)
    await t.rejects(removeArchive(archiveOf(id, undefined, 2), deps), { code: 'TARGET_UNAVAILABLE' })
    t.same(rows, ['removing'], 'the row stays until every target has removed the files')
    await rename(away, one.directory)
    await removeArchive(archiveOf(id, undefined, 2), deps)
    t.same(rows, ['removing', 'removing', 'removed'])
    t.same(await files.names(id), [])
    // A copy that was being made meanwhile.
    await one.target.write(id, segment(1), sealed(id, segment(1), Buffer.from('content 1')), signal)
    const late = createArchiveCopier({
      ledger: { ...ledgerOf([archiveOf(id, undefined, 1)]), isStored: () => Promise.resolve(false) },
      files,
      clock: systemClock,
    })
    await late(two, signal)
    t.same(await namesOf(two, id), [])
    await one.target.removeAll(id)
  })

  await t.test('what expires is removed from all targets, and not copied again', async (t) => {
    const [id, base] = [randomUUID(), randomUUID()]
    const archive = archiveOf(id, base, 3)
    const [stored] = archive.bases
    if (stored === undefined) throw new Error('no base')
    archive.bases = [{ ...stored, startSegment: segment(3), stopSegment: segment(3) }]
    await write(id, baseFile(base), 'base')
    for (const number of [1, 2, 3]) await write(id, segment(number), `content ${number}`)
    await createArchiveCopier({ ledger: ledgerOf([archive]), files, clock: systemClock })(two, signal)
    await writeFile(join(one.files, id, `${segment(2)}.new`), 'left by a kill')
    const trimmed: string[] = []
    const ledger = { trim: async (_archive: Archive, first: string) => void trimmed.push(first) } as never
    await expire(archive, 7, { ledger, files, clock: systemClock, epoch: 1n })
    t.same(trimmed, [segment(3)])
    archive.firstSegment = segment(3)
    const copyTo = createArchiveCopier({ ledger: ledgerOf([archive]), files, clock: systemClock })
    for (const target of [one.target, two]) {
      await copyTo(target, signal)
      t.same(await namesOf(target, id), [segment(3), baseFile(base)])
    }
  })
  t.ok((await readdir(one.files)).length > 0)
})

async function* fullDisk(): AsyncGenerator<Uint8Array, undefined> {
  yield Buffer.from('begun')
  throw Object.assign(new Error('no space left on device'), { code: 'ENOSPC' })
}
