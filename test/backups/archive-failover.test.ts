// The archive of a cluster: it continues at the next primary on its timeline, takes what that one lacks from a replica, and
// ends only when no member has it.
import { randomBytes, randomUUID } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import t from 'tap'
import { pack } from 'tar-stream'
import { createArchiveDirectory } from '#control-plane/backups/archive/archive-target.ts'
import { createArchiveFiles } from '#control-plane/backups/archive/archive-files.ts'
import { storeSegments, type Known } from '#control-plane/backups/archive/archive-tenant.ts'
import type { Archive } from '#control-plane/backups/archive/archive.ts'
import type { Engine } from '#control-plane/engines/engine.ts'
import { systemClock } from '#control-plane/platform/clock.ts'

const directory = await mkdtemp(join(tmpdir(), 'tenantry-failover-'))
t.teardown(() => rm(directory, { recursive: true, force: true }))
const key = randomBytes(32)
const signal = new AbortController().signal
const on = (timeline: number, number: number) =>
  `0000000${timeline}${number.toString(16).padStart(16, '0').toUpperCase()}`
const history = '00000002.history'
/** The second timeline branches off within the segment 4. */
const branch = gzipSync('1\t0/4000148\tno recovery target specified\n')

interface Member {
  /** Files in the spool, by name. */
  spool: Map<string, Buffer>
  timeline: number
  /** Position that Postgres reports; absent: the end of the spool. */
  position?: string
  isAway: boolean
}

/** A cluster with an archive whose log ends with the segment 2 of the first timeline. */
function scene() {
  const members: Record<string, Member> = {}
  for (const name of ['postgres-1', 'postgres-2', 'postgres-3'])
    members[name] = { spool: new Map(), timeline: 1, isAway: false }
  const time = { now: 1_795_508_000_000 }
  let archive: Archive = {
    ...{ id: randomUUID(), tenantId: 't_1', state: 'open', firstSegment: on(1, 1), lastSegment: on(1, 2) },
    ...{ latest: undefined, bytes: 0, error: undefined, createdAt: new Date(time.now), bases: [] },
  }
  const branches: string[] = []
  const ledger = {
    key: () => Promise.resolve(key),
    async advance(_archive: Archive, change: Partial<Archive> & { branches: readonly string[] }) {
      const { branches: found, bytes = 0, error: _error, ...columns } = change
      branches.push(...found)
      archive = { ...archive, ...columns, bytes: archive.bytes + bytes }
    },
    async end(_archive: Archive, error: string) {
      archive = { ...archive, state: 'ended', error }
    },
  } as never
  const engine = {
    async *execStream(_stack: string, service: string, command: readonly string[]) {
      const member = members[service]
      if (member === undefined || member.isAway) throw new Error('The member is away.')
      const [storedUntil = '', role] = command.slice(-2)
      const tar = pack()
      if (role !== 'replica') {
        const end = [...member.spool.keys()].sort().at(-1) ?? on(1, 2)
        const position = member.position ?? `0/${(Number.parseInt(end.slice(-8), 16) + 1).toString(16)}000100`
        tar.entry({ name: 'state' }, `${time.now / 1000} ${position} 7 8 0000000${member.timeline}\n`)
      }
      for (const name of member.spool.keys()) if (name <= storedUntil) member.spool.delete(name)
      for (const name of [...member.spool.keys()].sort().slice(0, 16))
        tar.entry({ name: `on/${name}.gz` }, member.spool.get(name) ?? '')
      tar.finalize()
      yield* tar as AsyncIterable<Uint8Array>
    },
  } as unknown as Engine
  const files = createArchiveFiles([createArchiveDirectory(directory, randomUUID())], systemClock)
  const deps = { ledger, files, clock: { now: () => new Date(time.now) }, epoch: 0n }
  let progress: Known | undefined
  return {
    member: (name: string) => members[name] ?? { spool: new Map<string, Buffer>(), timeline: 1, isAway: true },
    time,
    branches,
    archive: () => archive,
    names: async () => (await files.names(archive.id)).sort(),
    /** Reads the spool of the primary, again as long as more waits. */
    async poll(primary: string) {
      const replicas = Object.keys(members).filter((name) => name !== primary)
      const server = { engine, stack: 't_1', service: primary, replicas }
      let hasMore = true
      while (hasMore) {
        const stored = await storeSegments(archive, server, { progress, isBaseFailed: false }, deps, signal)
        progress = stored.progress
        hasMore = stored.hasMore
      }
    },
  }
}

const put = ({ spool }: Member, ...names: string[]) => {
  for (const name of names) spool.set(name, name === history ? branch : gzipSync(name))
}

t.test('The log continues at the next primary, with the history of its timeline', async (t) => {
  const { member, archive, names, branches, poll, time } = scene()
  put(member('postgres-1'), on(1, 3), on(1, 4))
  await poll('postgres-1')
  t.equal(archive().lastSegment, on(1, 4))
  const promoted = member('postgres-2')
  put(promoted, on(1, 2), on(1, 3), history, on(2, 4), on(2, 5))
  promoted.timeline = 2
  time.now += 30_000
  await poll('postgres-2')
  t.match(archive(), { state: 'open', lastSegment: on(2, 5) })
  t.same(await names(), [history, on(1, 3), on(1, 4), on(2, 4), on(2, 5)].sort())
  t.same(branches, [on(2, 4)])
  t.equal(archive().latest, undefined, 'the first observation of the new primary is not covered yet')
  put(promoted, on(2, 6))
  time.now += 30_000
  await poll('postgres-2')
  t.equal(archive().latest?.getTime(), time.now - 31_000, 'the observation of the poll before')
})

t.test('What the primary lacks comes from a replica', async (t) => {
  const { member, archive, names, poll } = scene()
  const promoted = member('postgres-3')
  promoted.timeline = 2
  put(promoted, history, on(2, 4), on(2, 5))
  put(member('postgres-2'), on(1, 3), on(1, 4))
  await poll('postgres-3')
  t.match(archive(), { state: 'open', lastSegment: on(2, 5) })
  t.same(await names(), [history, on(1, 3), on(1, 4), on(2, 4), on(2, 5)].sort())
})

t.test('The archive ends when no member has a segment, later while a member is away', async (t) => {
  for (const isAway of [false, true]) {
    const { member, archive, poll, time } = scene()
    member('postgres-2').isAway = isAway
    put(member('postgres-1'), on(1, 4))
    await poll('postgres-1')
    time.now += 59_000
    await poll('postgres-1')
    t.equal(archive().state, 'open')
    time.now += isAway ? 542_000 : 2_000
    await poll('postgres-1')
    t.match(archive(), { state: 'ended', error: /^The segment 000000010000000000000003 of the WAL was dropped/ })
  }
})

t.test('A segment that appears in time continues the log', async (t) => {
  const { member, archive, poll, time } = scene()
  put(member('postgres-1'), on(1, 4))
  await poll('postgres-1')
  time.now += 50_000
  put(member('postgres-3'), on(1, 3))
  await poll('postgres-1')
  t.match(archive(), { state: 'open', lastSegment: on(1, 4) })
})

t.test('An archive whose log the primary does not have ends', async (t) => {
  const { member, archive, poll } = scene()
  member('postgres-1').position = '0/2000100'
  await poll('postgres-1')
  t.match(archive(), { state: 'ended', error: /^The archive has a part of the log that the primary does not have/ })
})
