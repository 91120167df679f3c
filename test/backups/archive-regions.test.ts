// The archives of regions whose engine does not respond: they delay no other region, and their own polls end soon.
import { randomBytes, randomUUID } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { pack } from 'tar-stream'
import { createArchiveFiles } from '#control-plane/backups/archive/archive-files.ts'
import { createArchiveDirectory } from '#control-plane/backups/archive/archive-target.ts'
import { createPoll, runArchives } from '#control-plane/backups/archive/jobs-archives.ts'
import type { Archive } from '#control-plane/backups/archive/archive.ts'
import type { Engine } from '#control-plane/engines/engine.ts'
import { systemClock } from '#control-plane/platform/clock.ts'
import { until } from '#test/support/until.ts'

const directory = await mkdtemp(join(tmpdir(), 'tenantry-archive-regions-'))
t.teardown(() => rm(directory, { recursive: true, force: true }))
/** Limits and waits end after a hundredth of their time. */
const clock = {
  ...systemClock,
  timeout: (milliseconds: number) => AbortSignal.timeout(milliseconds / 100),
  sleep: (milliseconds: number, signal?: AbortSignal) => systemClock.sleep(milliseconds / 100, signal),
}
// The timers of limits do not keep a process alive.
const alive = setInterval(() => undefined, 1_000)
t.teardown(() => clearInterval(alive))
const log = { warn: () => undefined }
const key = randomBytes(32)
const segment = '000000010000000000000001'

/** An engine whose containers and whose own calls respond, or not. Calls that were aborted end. */
function engineOf(state: { containersHang: boolean; engineHangs: boolean; reads: string[] }): Engine {
  const aborted = (signal: AbortSignal) =>
    new Promise<never>((_resolve, reject) => {
      signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true })
    })
  return {
    info: () => (state.engineHangs ? new Promise(() => undefined) : Promise.resolve({})),
    async *execStream(
      stack: string,
      _service: string,
      _command: readonly string[],
      { signal }: { signal: AbortSignal },
    ) {
      state.reads.push(stack)
      if (state.containersHang) await aborted(signal)
      const tar = pack()
      tar.entry({ name: 'state' }, `${Date.now() / 1000} 0/2000000 7 7 00000001\n`)
      tar.entry({ name: `on/${segment}.gz` }, 'content')
      tar.finalize()
      yield* tar as AsyncIterable<Uint8Array>
    },
  } as unknown as Engine
}

/** Two regions: `away` with 12 tenants, and `near` with one. */
function installation() {
  const away = { containersHang: true, engineHangs: true, reads: [] as string[] }
  const near = { containersHang: false, engineHangs: false, reads: [] as string[] }
  const idOf = (number: number) => `t_${String(number).padStart(20, '0')}`
  const tenants = Array.from({ length: 13 }, (_, number) => ({
    id: idOf(number),
    regionId: number < 12 ? 'away' : 'near',
    isolation: 'database-per-tenant',
    days: 7,
  }))
  const createdAt = new Date()
  const archives = new Map(
    tenants.map(({ id }): [string, Archive] => [
      id,
      {
        ...{ id: randomUUID(), tenantId: id, state: 'open', firstSegment: undefined, lastSegment: undefined },
        ...{ latest: undefined, bytes: 0, error: undefined, createdAt },
        bases: [{ id: 'b', startSegment: segment, stopSegment: segment, completeAt: createdAt, createdAt }],
      },
    ]),
  )
  const failures: string[] = []
  const stored = new Set<string>()
  const ledger = {
    key: () => Promise.resolve(key),
    of: (id: string) => Promise.resolve([archives.get(id)].flatMap((archive) => archive ?? [])),
    archived: (region: string) => Promise.resolve(tenants.filter(({ regionId }) => regionId === region)),
    unwanted: () => Promise.resolve([]),
    advance: ({ tenantId }: Archive) => Promise.resolve(void stored.add(tenantId)),
    fail: ({ tenantId }: Archive) => Promise.resolve(void failures.push(tenantId)),
    trim: () => Promise.resolve(),
  } as never
  const primaryService = () => Promise.resolve('postgres')
  const regions = new Map([
    ['away', { engine: engineOf(away), primaryService }],
    ['near', { engine: engineOf(near), primaryService }],
    ['process', { engine: undefined, primaryService }],
  ])
  const files = createArchiveFiles([createArchiveDirectory(directory, randomUUID())], systemClock)
  const deps = { ledger, files, regions, clock, log, measure: () => undefined }
  return { away, near, failures, stored, deps, near13: idOf(12) }
}

t.test('A region whose engine hangs delays no other region', async (t) => {
  const { away, near, stored, deps, near13 } = installation()
  const leaving = new AbortController()
  const running = runArchives(deps)({ epoch: 1n, lost: leaving.signal })
  await until(() => near.reads.length >= 5, 'the other region is polled again and again')
  t.ok(away.reads.length <= 4, 'while the first reads of the region still wait')
  t.same([...stored], [near13])
  away.containersHang = away.engineHangs = false
  await until(() => stored.size === 13, 'all tenants are archived when it responds')
  leaving.abort()
  await running
})

t.test('A poll of a region ends when its engine does not respond', async (t) => {
  const { away, failures, stored, deps } = installation()
  const poll = createPoll({ ...deps, epoch: 1n }, new AbortController().signal)
  await poll.run('away')
  t.equal(away.reads.length, 4, 'only the reads that had begun waited')
  t.equal(failures.length, 4, 'their archives are reported as failed')
  await poll.run('away')
  t.equal(away.reads.length, 4, 'the next poll begins with the engine, which does not respond')
  away.engineHangs = away.containersHang = false
  await poll.run('away')
  t.equal(stored.size, 12)
})

t.test('Containers that hang do not end the poll of a region whose engine responds', async (t) => {
  const { away, stored, deps } = installation()
  const poll = createPoll({ ...deps, epoch: 1n }, new AbortController().signal)
  away.engineHangs = false
  await poll.run('away')
  t.same([away.reads.length, stored.size], [12, 0])
  away.containersHang = false
  await poll.run('away')
  t.equal(stored.size, 12)
})

t.test('A region without an engine has nothing to poll', async (t) => {
  const { deps, away, near } = installation()
  await createPoll({ ...deps, epoch: 1n }, new AbortController().signal).run('process')
  t.same([away.reads, near.reads], [[], []])
})
