// The observed runs of functions when several runtimes share the tenants: none is lost or counted twice, however their number
// changes, and however they end.
import { appendFile, readdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { isServed, shardOf } from '@tenantry/contract'
import fc from 'fast-check'
import t from 'tap'
import { ObservedRuns } from '#tenant-runtime/metering/observed-runs.ts'
import { StoredRuns } from '#tenant-runtime/metering/stored-runs.ts'
import { manifestFile, otherManifestFiles, removeStaleManifests } from '#tenant-runtime/tenancy/manifest-files.ts'
import { effort, seed } from '#test/support/effort.ts'

const hour = Date.UTC(2026, 10, 22, 3)
const counters = '00000000-0000-4000-8000-000000000001'
const run = {
  begun: { at: hour },
  durationMilliseconds: 20,
  cpuMicroseconds: 7_000,
  memoryPeak: 2_048,
  egressBytes: 100,
}
const tenants = Array.from({ length: 12 }, (_, n) => `t_${String(n).padStart(20, '0')}`)

function runsOf(stored: Pick<StoredRuns, 'report'>, tenantId: string): number {
  return [...stored.report(tenantId, counters).values()].reduce(
    (sum, { functionInvocations }) => sum + Number(functionInvocations),
    0,
  )
}

/** Starts a number of runtimes on a directory. */
async function start(data: string, runtimes: number) {
  const errors: string[] = []
  const all = Array.from({ length: runtimes }, (_, number) => {
    const share = { number, runtimes }
    return { share, runs: new StoredRuns({ data, share, onError: ({ message }) => errors.push(message) }) }
  })
  await Promise.all(all.map(({ runs }) => runs.load()))
  return {
    errors,
    of(tenantId: string): StoredRuns {
      const owner = all.find(({ share }) => isServed(tenantId, share))
      if (owner === undefined) throw new Error(`No runtime serves ${tenantId}.`)
      return owner.runs
    },
    /** Ends all runtimes. Each writes what it has not written. */
    stop: () => Promise.all(all.map(({ runs }) => runs.run(AbortSignal.abort()))),
  }
}

t.test('Any changes of the number of runtimes preserve the runs of each tenant', async (t) => {
  t.comment(`seed ${seed}`)
  const directory = t.testdir({})
  let round = 0
  const period = fc.record({
    runtimes: fc.integer({ min: 1, max: 8 }),
    noted: fc.array(fc.constantFrom(...tenants), { maxLength: 20 }),
    evicted: fc.option(fc.constantFrom(...tenants), { freq: 5 }),
  })
  await fc.assert(
    fc.asyncProperty(fc.array(period, { minLength: 1, maxLength: 6 }), async (periods) => {
      const data = join(directory, String(round++))
      const expected = new Map(tenants.map((id) => [id, 0]))
      for (const { runtimes, noted, evicted } of [...periods, { runtimes: 3, noted: [], evicted: null }]) {
        const running = await start(data, runtimes)
        for (const id of tenants) t.equal(runsOf(running.of(id), id), expected.get(id))
        for (const id of noted) {
          running.of(id).note(id, run)
          expected.set(id, (expected.get(id) ?? 0) + 1)
        }
        if (evicted !== null) {
          running.of(evicted).evict(evicted)
          expected.set(evicted, 0)
        }
        await running.stop()
        t.same(running.errors, [])
      }
    }),
    { seed, numRuns: effort({ small: 20, full: 500 }) },
  )
})

t.test('The file of an earlier version is divided among the shards, and removed when all have read it', async (t) => {
  const data = t.testdir({})
  const earlier = new ObservedRuns()
  for (const [n, id] of tenants.entries()) for (let runs = 0; runs <= n; runs++) earlier.note(id, run)
  const path = join(data, 'run-witness.ndjson')
  await writeFile(path, earlier.changes().join('\n'))
  await appendFile(path, '\n{"tenant_id":"t_00000000000000000000","hour"')
  const errors: string[] = []
  const open = (number: number) =>
    new StoredRuns({ data, share: { number, runtimes: 2 }, onError: ({ message }) => errors.push(message) })
  await open(0).load()
  t.ok((await readdir(data)).includes('run-witness.ndjson'), 'runtime 1 has not read it yet')
  await open(1).load()
  t.same(await readdir(data), ['run-witness'])
  t.match(errors, [/^1 of \d+ lines of observed runs could not be read\.$/])
  t.equal(errors.length, 1)
  t.same(
    (await readdir(join(data, 'run-witness'))).sort(),
    [...new Set(tenants.map((id) => `${shardOf(id)}.ndjson`))].sort(),
  )
  const running = await start(data, 3)
  for (const [n, id] of tenants.entries()) t.equal(runsOf(running.of(id), id), n + 1)
})

t.test('Stored manifests of runtimes that no longer exist are read, and removed by runtime 0', async (t) => {
  const data = t.testdir({})
  t.same(await otherManifestFiles(join(data, 'missing'), 0), [])
  for (const name of ['manifests.ndjson', 'manifests-1.ndjson', 'manifests-2.ndjson', 'manifests-1.ndjson.next'])
    await writeFile(join(data, name), '')
  t.same((await otherManifestFiles(data, 1)).sort(), [manifestFile(data, 2), manifestFile(data, 0)].sort())
  await removeStaleManifests(data, { number: 1, runtimes: 2 })
  t.equal((await readdir(data)).length, 4, 'only runtime 0 removes them')
  await removeStaleManifests(data, { number: 0, runtimes: 2 })
  t.same((await readdir(data)).sort(), ['manifests-1.ndjson', 'manifests-1.ndjson.next', 'manifests.ndjson'])
})
