// The archiver, the object store, the tenants' Postgres and the control database are killed while segments and base backups are
// uploaded, copied and expired. Whatever the archive claims to have can be read, and nothing is left behind.
import { spawn, type ChildProcess } from 'node:child_process'
import { createHash, randomBytes, randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { mkdir, mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { baseFile, fileContext } from '#control-plane/backups/archive/file-names.ts'
import { usableBases, type Archive } from '#control-plane/backups/archive/archive.ts'
import { segmentsBetween } from '#control-plane/backups/archive/wal.ts'
import { effort, seed } from '#test/support/effort.ts'
import { startPlane } from '#test/support/control-plane/plane.ts'
import { startS3Server } from '#test/support/s3-server.ts'
import { until } from '#test/support/until.ts'
import { chanceOf } from '#test/simulation/chance.ts'
import { openArchiver, type ArchiverSettings } from './support/archiver.ts'
import { baseContent, createSpooledPostgres } from './support/spooled-engine.ts'

const kills = effort({ small: 4, full: 100 })
/** In small runs, the archiver keeps up also on a busy machine. */
const dayMilliseconds = effort({ small: 20_000, full: 6_000 })
const segmentMilliseconds = effort({ small: 400, full: 100 })
const maxDelayMilliseconds = 1_500
const maxSegmentBytes = 600_000
/** On a busy machine, the object store needs this long for what has accumulated. */
const busyMilliseconds = 400_000
const program = new URL('support/archiver.ts', import.meta.url).pathname

t.test('kills during the archiving of WAL', { timeout: 7_200_000 }, async (t) => {
  t.comment(`seed ${seed}`)
  const chance = chanceOf(seed)
  const root = await mkdtemp(join(tmpdir(), 'tenantry-archive-kills-'))
  t.teardown(() => rm(root, { recursive: true, force: true }))
  const bucket = await startS3Server()
  t.teardown(() => bucket.stop())
  const masterKey = randomBytes(32)
  const plane = await startPlane(t, masterKey)
  const tenants = [await plane.addTenant({ archive_days: 1 }), await plane.addTenant({ archive_days: 1 })]
  const settings: ArchiverSettings = {
    controlUrl: plane.url,
    masterKey: masterKey.toString('base64'),
    installation: randomUUID(),
    region: plane.region().id,
    spools: join(root, 'spools'),
    directory: join(root, 'directory'),
    bucket: bucket.settings,
    since: Date.now(),
    dayMilliseconds,
  }
  await mkdir(settings.directory)
  const { database, ledger, targets, files } = openArchiver(settings)
  t.teardown(() => database.$disconnect())
  const signal = new AbortController().signal

  let output = ''
  const start = () => {
    const child = spawn(process.execPath, [program, JSON.stringify(settings)], { stdio: ['ignore', 'pipe', 'pipe'] })
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding('utf8').on('data', (text: string) => (output = (output + text).slice(-20_000)))
    return child
  }
  const end = async (child: ChildProcess) => {
    if (child.exitCode !== null || child.signalCode !== null) throw new Error(`The archiver has ended: ${output}`)
    const gone = once(child, 'exit')
    child.kill('SIGKILL')
    await gone
  }

  const hash = (content: Uint8Array) => createHash('sha256').update(content).digest('hex')
  const written = new Map<string, string>()
  const servers = await Promise.all(
    tenants.map(async (id) => ({ id, postgres: await createSpooledPostgres(settings.spools, id) })),
  )
  const writing = { isStopped: false }
  const writers = servers.map(async ({ id, postgres }) => {
    while (!writing.isStopped) {
      const content = randomBytes(1 + chance.below(maxSegmentBytes))
      written.set(`${id}/${await postgres.finish(content)}`, hash(content))
      await new Promise((resolve) => setTimeout(resolve, segmentMilliseconds))
    }
  })

  let archiver = start()
  t.teardown(() => archiver.kill('SIGKILL'))
  const read = async (archive: Archive, name: string) => {
    const opening = { key: await ledger.key(archive.id), context: fileContext(archive.id, name) }
    const sum = createHash('sha256')
    for await (const chunk of files.read(archive.id, name, opening, signal)) sum.update(chunk)
    return sum.digest('hex')
  }
  const baseHash = (id: string) => {
    const sum = createHash('sha256')
    for (const chunk of baseContent(id)) sum.update(chunk)
    return sum.digest('hex')
  }
  const archivesOf = async () => {
    let found: Archive[] | undefined
    // Connections of a crashed control database fail once.
    await until(async () => {
      found = await Promise.all(tenants.map((id) => ledger.of(id))).then(
        (each) => each.flat(),
        () => undefined,
      )
      return found !== undefined
    }, 'the control database')
    return found ?? []
  }
  let filesRead = 0
  /** Reads everything that a recovery to any moment would use. @returns the names of files that are wrong */
  const wrongFiles = async () => {
    const wrong: string[] = []
    for (const archive of await archivesOf()) {
      const usable = usableBases(archive)
      const [first] = usable
      if (first === undefined) continue
      const names = segmentsBetween(first.startSegment, archive.lastSegment ?? first.startSegment)
      const expected = [
        ...usable.map(({ id }) => [baseFile(id), baseHash(id)] as const),
        ...[...names].map((name) => [name, written.get(`${archive.tenantId}/${name}`)] as const),
      ]
      for (const [name, content] of expected) {
        filesRead++
        const found = await read(archive, name).catch(String)
        if (found !== content) wrong.push(`${name}: ${found}`)
      }
    }
    return wrong
  }

  const uploads = { interrupted: 0 }
  const victims = [
    async () => {
      await end(archiver)
      const left = await readdir(settings.directory, { recursive: true })
      const { begun } = await bucket.keys()
      if (begun.length > 0 || left.some((name) => name.endsWith('.new'))) uploads.interrupted++
      t.same(await wrongFiles(), [], 'after a kill of the archiver, everything can be read')
      archiver = start()
    },
    async () => {
      await bucket.kill()
      await new Promise((resolve) => setTimeout(resolve, chance.below(maxDelayMilliseconds)))
      await bucket.start()
    },
    async () => {
      const { postgres } = chance.pick(servers)
      await postgres.setAway(true)
      await new Promise((resolve) => setTimeout(resolve, chance.below(maxDelayMilliseconds)))
      await postgres.setAway(false)
    },
    () => plane.crash(),
  ]
  await until(async () => (await archivesOf()).filter((archive) => usableBases(archive).length > 0).length === 2)
  for (let round = 0; round < kills; round++) {
    await new Promise((resolve) => setTimeout(resolve, chance.below(maxDelayMilliseconds)))
    await victims[round % victims.length]?.()
  }

  writing.isStopped = true
  await Promise.all(writers)
  const isStored = async () => {
    const open = (await archivesOf()).filter(({ state }) => state === 'open')
    return tenants.every((id) => {
      const names = [...written.keys()].filter((name) => name.startsWith(id))
      return open.some(({ tenantId, lastSegment = '' }) => `${tenantId}/${lastSegment}` === names.sort().at(-1))
    })
  }
  await until(isStored, 'everything is stored')
  const archives = await archivesOf()
  t.equal(archives.length, tenants.length, 'no archive has ended')
  t.match(
    archives.map(({ state }) => state),
    ['open', 'open'],
  )

  /** Returns the names of files that no moment needs or that are missing, in each target. */
  const differences = async () => {
    const found: string[] = []
    for (const archive of await archivesOf()) {
      const { firstSegment = '', lastSegment = '', bases } = archive
      const complete = bases.filter(({ completeAt }) => completeAt !== undefined).map(({ id }) => baseFile(id))
      const expected = new Set([...complete, ...segmentsBetween(firstSegment, lastSegment)])
      for (const target of targets) {
        const names = new Set(await target.names(archive.id))
        found.push(
          ...[...names.symmetricDifference(expected)].map(
            (name) => `${target.name}: ${name} of ${archive.id} is ${names.has(name) ? 'left' : 'missing'}`,
          ),
        )
      }
    }
    const { begun } = await bucket.keys()
    return [...found, ...begun.map((key) => `${key} (unfinished)`)]
  }
  let differing: string[] = []
  await until(
    async () => (differing = await differences()).length === 0,
    'the targets have exactly the archives',
    busyMilliseconds,
  ).catch(() => t.same(differing, [], `nothing is left, and nothing is missing\n${output}`))
  await end(archiver)
  t.same(await wrongFiles(), [], 'at the end, everything can be read')
  t.comment(
    `${kills} kills, ${uploads.interrupted} of the archiver during a write; ${written.size} segments, ${filesRead} files read`,
  )

  await plane.sql('update tenants set archive_days = null')
  archiver = start()
  const isGone = async () =>
    (await archivesOf()).length === 0 &&
    (await bucket.keys()).whole.length === 0 &&
    (await readdir(settings.directory, { recursive: true, withFileTypes: true })).every((entry) => !entry.isFile())
  await until(isGone, 'removed archives leave no file', busyMilliseconds)
})
