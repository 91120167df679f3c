// Archives: their files and rows stay correct after interruptions, gaps and a full target, and the API shows what they
// cover and restores only that.
import { randomUUID } from 'node:crypto'
import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { buffer } from 'node:stream/consumers'
import t from 'tap'
import { pack } from 'tar-stream'
import { expire, storeSegments } from '#control-plane/backups/archive/archive-tenant.ts'
import { fileContext } from '#control-plane/backups/archive/file-names.ts'
import { createArchiveFiles } from '#control-plane/backups/archive/archive-files.ts'
import { createArchiveDirectory } from '#control-plane/backups/archive/archive-target.ts'
import { createArchiveLedger } from '#control-plane/backups/archive/store-archives.ts'
import type { Archive } from '#control-plane/backups/archive/archive.ts'
import { BackupError } from '#control-plane/backups/backup-error.ts'
import { decrypted } from '#control-plane/backups/encrypted-stream.ts'
import type { Engine } from '#control-plane/engines/engine.ts'
import { systemClock } from '#control-plane/platform/clock.ts'
import { openDatabase } from '#control-plane/platform/database.ts'
import { startApi, type ApiResponse } from '#test/support/control-plane/api.ts'

const installation = randomUUID()
const directory = await mkdtemp(join(tmpdir(), 'tenantry-archives-'))
t.teardown(() => rm(directory, { recursive: true, force: true }))
const api = await startApi(t, { cloud: true, jobs: false, backups: { directory, installation } })
const database = openDatabase(api.controlUrl)
t.teardown(() => database.$disconnect())
const epoch = BigInt(String((await api.sql('select epoch from installation'))[0]?.['epoch']))
const hour = 3_600_000
let time = Date.now()
const now = () => new Date(time)
const ledger = createArchiveLedger(database, api.seal, now)
const target = createArchiveDirectory(directory, installation)
const files = createArchiveFiles([target], systemClock)
const deps = { ledger, files, clock: { now }, epoch }
const signal = new AbortController().signal

const segment = (number: number) => `0000000100000000000000${number.toString(16).toUpperCase().padStart(2, '0')}`
const position = (number: number) => `0/${number.toString(16).toUpperCase()}000000`

/** The spool of a tenant's Postgres; undefined when the volume has none. `begun` counts how often it was created. */
const spool: { segments: number[] | undefined; begun: number } = { segments: undefined, begun: 0 }

/** An engine whose container has the spool. Its Postgres is idle, at the end of the last segment. */
const engine = {
  exec: async () => {
    spool.segments = []
    spool.begun++
    return { code: 0, stdout: '', stderr: '' }
  },
  execStream: (_stack: string, _service: string, command: readonly string[]) => {
    const storedUntil = command.at(-2) ?? ''
    const tar = pack()
    if (spool.segments !== undefined) {
      spool.segments = spool.segments.filter((number) => segment(number) > storedUntil)
      const end = (spool.segments.at(-1) ?? (Number.parseInt(storedUntil.slice(-2), 16) || 0)) + 1
      tar.entry({ name: 'state' }, `${time / 1000 + 1} ${position(end)} 7 7 00000001\n`)
      for (const number of spool.segments) tar.entry({ name: `on/${segment(number)}.gz` }, `content ${number}`)
    }
    tar.finalize()
    return tar as AsyncIterable<Uint8Array>
  },
} as unknown as Engine

const tenant = await api.create(undefined, { plan: 'Pro', region: 'cloud' })
const id = tenant.tenant_id
const server = { engine, stack: id, service: 'postgres', replicas: [] }
const known = { progress: undefined, isBaseFailed: false }
const open = async (): Promise<Archive> => {
  const found = (await ledger.of(id)).find(({ state }) => state === 'open')
  if (found === undefined) throw new Error('no archive is open')
  return found
}
const store = async () => storeSegments(await open(), server, known, deps, signal)
const filesOf = async (archiveId: string) =>
  (await readdir(join(directory, installation, 'archives', archiveId))).sort()
const recovery = async () => (await api.call('GET', `/v1/tenants/${id}/recovery`)).body as Record<string, unknown>
const restore = (body: object, of = id) => api.call('POST', `/v1/tenants/${of}/restore`, { body })
const events = () => api.sql("select data from operator_events where tenant_id = $1 and type = 'archive.failed'", [id])

function isRejected({ status, body }: ApiResponse, wanted: number, code: string): void {
  t.match({ status, body }, { status: wanted, body: { code, message: String } })
}

/** Records a base backup in one segment, with its file. */
async function addBase(number: number): Promise<string> {
  const archive = await open()
  const baseId = await ledger.beginBase(archive, epoch)
  async function* content() {
    yield Buffer.from('base')
  }
  const bytes = await target.write(archive.id, `base-${baseId}`, content(), signal)
  const bounds = { startSegment: segment(number), stopSegment: segment(number), completeAt: now() }
  await ledger.completeBase(archive, baseId, bounds, bytes, epoch)
  return baseId
}

t.test('Segments are stored in order, and a repeated or interrupted attempt loses and doubles none', async (t) => {
  await ledger.begin(id, epoch)
  t.same(await ledger.begin(id, epoch).catch(() => 'rejected'), 'rejected', 'a tenant has one open archive')
  const { id: archiveId } = await open()
  t.notOk((await store()).isReady)
  t.equal(spool.begun, 1, 'a spool is created')
  spool.segments = [1, 2]
  const unrecorded = { ...deps, ledger: { ...ledger, advance: () => Promise.reject(new Error('killed')) } }
  await t.rejects(storeSegments(await open(), server, known, unrecorded, signal), { message: 'killed' })
  t.match(await open(), { lastSegment: undefined })
  t.same(spool.segments, [1, 2], 'segments stay in the spool until they are recorded')
  t.ok((await store()).isReady)
  t.match(await open(), { firstSegment: segment(1), lastSegment: segment(2), error: undefined })
  spool.segments.push(3)
  await store()
  t.same(await filesOf(archiveId), [1, 2, 3].map(segment))
  t.same(spool.segments, [3], 'recorded segments are removed from the spool')
  const key = await ledger.key(archiveId)
  const read = (name: string, as = name) =>
    buffer(decrypted(target.read(archiveId, name, signal), key, fileContext(archiveId, as)))
  t.equal((await read(segment(2))).toString(), 'content 2')
  await t.rejects(read(segment(2), segment(1)), { code: 'DAMAGED' }, 'a file under another name')
  await t.rejects(read(segment(9)), { code: 'INCOMPLETE' })
})

t.test('A target that is full keeps the archive open, reports it once, and loses nothing', async (t) => {
  const full = {
    ...deps,
    files: { ...files, write: () => Promise.reject(new BackupError('DISK_FULL', 'The backup directory is full.')) },
  }
  spool.segments?.push(4)
  for (let times = 0; times < 3; times++) {
    await t.rejects(storeSegments(await open(), server, known, full, signal), { code: 'DISK_FULL' })
    await ledger.fail(await open(), 'The backup directory is full.', epoch)
  }
  t.equal((await events()).length, 1)
  t.match(await recovery(), { error: 'The backup directory is full.' })
  await store()
  t.match(await recovery(), { error: null })
  t.match(await open(), { lastSegment: segment(4) })
})

t.test('The API shows what can be recovered, and restores nothing else', async (t) => {
  t.match(await recovery(), { archive_days: null, earliest: null, latest: null, ranges: [], last_base: null })
  const to = now().toISOString()
  const early = await restore({ to, into: 'same' })
  isRejected(early, 422, 'OUTSIDE_ARCHIVE')
  time += hour
  await addBase(4)
  const from = now()
  time += hour
  await store()
  const latest = now()
  t.match(await recovery(), {
    earliest: from.toISOString(),
    latest: latest.toISOString(),
    ranges: [{ from: from.toISOString(), to: latest.toISOString() }],
    last_proven: null,
  })
  for (const outside of [new Date(from.getTime() - 1), new Date(latest.getTime() + 1)]) {
    const response = await restore({ to: outside.toISOString(), into: 'same' })
    isRejected(response, 422, 'OUTSIDE_ARCHIVE')
    t.match(response.body, { ranges: [{ from: from.toISOString(), to: latest.toISOString() }] })
  }
  for (const body of [
    {},
    { to },
    { to: 'yesterday', into: 'same' },
    { to: '2026-11-22', into: 'same' },
    { to: '2026-11-22T10:00:00', into: 'same' },
    { to: '2026-13-45T10:00:00Z', into: 'same' },
    { to, into: 'other' },
    { to, into: { plan: 'Pro' } },
    { to, into: 'same', files: false },
  ])
    t.equal((await restore(body)).status, 400, JSON.stringify(body))
  isRejected(await restore({ to, into: 'same' }, `t_${'0'.repeat(20)}`), 404, 'TENANT_NOT_FOUND')
  const shared = await api.create()
  isRejected(await restore({ to, into: 'same' }, shared.tenant_id), 422, 'NOT_DEDICATED')
  const refused = await api.call('PATCH', `/v1/tenants/${shared.tenant_id}`, { body: { archive_days: 7 } })
  isRejected(refused, 422, 'NOT_DEDICATED')

  const moment = latest.toISOString()
  const made = await restore({ to: moment, into: { name: 'recovered' } })
  t.match(made, {
    status: 202,
    body: { name: 'recovered', plan: 'Pro', status: 'pending', operation: { kind: 'restore' } },
  })
  const [backup] = await api.sql('select state, recovered_to from backups where tenant_id = $1', [id])
  t.same(backup, { state: 'running', recovered_to: latest }, 'the backup of that moment is not made yet')
  const same = await restore({ to: moment, into: 'same' })
  t.match(same, { status: 202, body: { recovered_to: moment, state: 'running', operation: { kind: 'restore' } } })
  isRejected(await restore({ to: moment, into: 'same' }), 423, 'OPERATION_IN_PROGRESS')
  t.match(await api.sql("select target, detail from audit_log where action = 'tenant.recover' order by seq"), [
    { target: id, detail: { to: moment, name: 'recovered' } },
    { target: id, detail: { to: moment } },
  ])
})

t.test('After a gap or a lost volume the archive ends, what it covers stays, and a new one begins', async (t) => {
  const before = await open()
  spool.segments?.push(5, 7)
  t.notOk((await store()).isReady)
  t.match(
    (await ledger.of(id)).map(({ state, error }) => ({ state, error })),
    [{ state: 'ended', error: /^The segment 000000010000000000000006 of the WAL was dropped/ }],
  )
  t.equal((await events()).length, 2)
  t.equal(((await recovery())['ranges'] as unknown[]).length, 1, 'the earlier range can still be recovered')
  await ledger.begin(id, epoch)
  spool.segments = undefined
  await store()
  spool.segments = [1, 2]
  await store()
  time += hour
  await addBase(2)
  await store()
  t.equal(((await recovery())['ranges'] as unknown[]).length, 2)
  spool.segments = undefined
  await store()
  t.ok(
    (await ledger.of(id)).every(({ state }) => state === 'ended'),
    'a volume without the spool',
  )
  t.equal((await events()).length, 3)
  t.ok((await filesOf(before.id)).length > 0)
})

t.test(
  'What no moment of the covered days needs is removed, and a tenant without an archive has no files',
  async (t) => {
    await ledger.begin(id, epoch)
    const archive = await open()
    await store()
    spool.segments = [1, 2, 3, 4]
    await store()
    await addBase(2)
    time += 30 * hour
    const second = await addBase(4)
    time += 30 * hour
    await store()
    async function* rest() {
      yield Buffer.from('left by an interrupted attempt')
    }
    await target.write(archive.id, `base-${randomUUID()}`, rest(), signal)
    await expire(await open(), 1, deps)
    t.same(await filesOf(archive.id), [segment(4), `base-${second}`])
    t.match(await open(), { firstSegment: segment(4), bases: [{ id: second }] })
    t.ok((await open()).bytes > 0)
    for (const old of await ledger.of(id)) await expire(old, 1, deps)
    t.same(await readdir(join(directory, installation, 'archives')), [archive.id], 'archives that have ended long ago')
    t.match(await ledger.unwanted(), [{ id: archive.id }], 'the tenant has no archive_days')
  },
)

t.test(
  'A new timeline removes the base backups that end after its branch, and none is recorded on an old one',
  async (t) => {
    const before = await open()
    const earlier = before.bases.map((base) => base.id)
    const cutOff = await addBase(9)
    const branch = `00000002${segment(9).slice(8)}`
    await ledger.advance(before, { lastSegment: branch, branches: [branch], bytes: 0 }, epoch)
    const after = await open()
    t.same(
      after.bases.map((base) => base.id),
      earlier,
      `the base backup ${cutOff} is removed`,
    )
    const late = await ledger.beginBase(after, epoch)
    const bounds = { startSegment: segment(5), stopSegment: segment(5), completeAt: now() }
    await t.rejects(ledger.completeBase(after, late, bounds, 1, epoch), {
      code: 'FAILED',
      message: 'The primary was replaced while the base backup was taken.',
    })
  },
)
