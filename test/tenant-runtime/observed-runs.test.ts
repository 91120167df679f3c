// The runs of functions that the runtime observed outlive its process: with whole, torn, damaged and missing files, new
// counters, and a kill.
import { appendFile, mkdir, readFile, rm, stat, truncate, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { HomeCounters, internalPaths, shardOf } from '@tenantry/contract'
import t from 'tap'
import { Value } from 'typebox/value'
import { hourMilliseconds } from '@tenantry/contract'
import { ObservedRuns } from '#tenant-runtime/metering/observed-runs.ts'
import { ObservedRunsFile } from '#tenant-runtime/metering/observed-runs-file.ts'
import { deploy, type Requester } from '#test/functions/support/deployed.ts'
import { command } from '#test/functions/support/wasm.ts'
import { openControl, startProcess } from '#test/storage/support/runtime-process.ts'
import { openScene } from '#test/storage/support/scene.ts'

const hour = Date.UTC(2026, 10, 22, 3)
const [one, other] = ['t_00000000000000000001', 't_00000000000000000002']
const [counters, newCounters] = ['00000000-0000-4000-8000-000000000001', '00000000-0000-4000-8000-000000000002']
const run = (at: number) => ({
  begun: { at },
  durationMilliseconds: 20,
  cpuMicroseconds: 7_000,
  memoryPeak: 2_048,
  egressBytes: 5,
})

function runsOf(observed: ObservedRuns, tenantId = one, of = counters): bigint {
  return [...observed.report(tenantId, of).values()].reduce(
    (sum, { functionInvocations }) => sum + functionInvocations,
    0n,
  )
}

/** Starts a runtime on the file. */
async function start(path: string) {
  const observed = new ObservedRuns()
  const errors: string[] = []
  const file = new ObservedRunsFile({ path, observed, onError: ({ message }) => errors.push(message) })
  await file.load()
  return { observed, file, errors }
}

t.test('A later start continues from the stored runs of each tenant, hour and amount', async (t) => {
  const path = join(t.testdir({}), 'deep', 'observed-runs')
  const first = await start(path)
  t.same(first.errors, [], 'a missing file is an empty one')
  for (const at of [hour, hour + 1, hour + hourMilliseconds]) first.observed.note(one, run(at))
  first.observed.note(other, run(hour))
  await first.file.save()
  first.observed.note(one, run(hour + 2))
  await first.file.save()
  const second = await start(path)
  t.same(
    second.observed.report(one, counters),
    new Map([
      [
        hour,
        {
          functionInvocations: 3n,
          functionMilliseconds: 60n,
          functionCpuMicroseconds: 21_000n,
          functionMemoryKibMilliseconds: 120n,
          functionEgressBytes: 15n,
        },
      ],
      [
        hour + hourMilliseconds,
        {
          functionInvocations: 1n,
          functionMilliseconds: 20n,
          functionCpuMicroseconds: 7_000n,
          functionMemoryKibMilliseconds: 40n,
          functionEgressBytes: 5n,
        },
      ],
    ]),
  )
  t.equal(runsOf(second.observed, other), 1n)
  second.observed.evict(other)
  await second.file.save()
  const third = await start(path)
  t.same(
    [runsOf(third.observed), runsOf(third.observed, other), third.errors],
    [4n, 0n, []],
    'an evicted tenant is deleted',
  )
  t.equal((await stat(path)).mode & 0o077, 0)
})

t.test('After the file is cut anywhere, all whole lines count, also at the next start', async (t) => {
  const path = join(t.testdir({}), 'observed-runs')
  const { observed, file } = await start(path)
  await file.save()
  for (let n = 0; n < 5; n++) {
    observed.note(one, run(hour))
    await file.save()
  }
  const whole = await readFile(path)
  let before = 0n
  for (let length = 0; length <= whole.length; length++) {
    await writeFile(path, whole.subarray(0, length))
    const torn = await start(path)
    const runs = runsOf(torn.observed)
    t.ok(runs === before || runs === before + 1n, `${length} bytes: ${runs}`)
    before = runs
    torn.observed.note(one, run(hour))
    await torn.file.save()
    t.equal(runsOf((await start(path)).observed), runs + 1n)
  }
  t.equal(before, 5n)
})

t.test('Lines of an earlier version, which had no egress, count, and later egress is added', async (t) => {
  const path = join(t.testdir({}), 'observed-runs')
  const runs = {
    functionInvocations: '3',
    functionMilliseconds: '60',
    functionCpuMicroseconds: '21000',
    functionMemoryKibMilliseconds: '120',
  }
  await writeFile(path, `${JSON.stringify({ tenant_id: one, hour, runs })}\n`)
  const { observed, errors } = await start(path)
  observed.note(one, run(hour))
  t.match(observed.report(one, counters).get(hour), { functionInvocations: 4n, functionEgressBytes: 5n })
  t.same(errors, [])
})

t.test('Damaged lines are reported and skipped', async (t) => {
  const path = join(t.testdir({}), 'observed-runs')
  const { observed, file } = await start(path)
  observed.note(one, run(hour))
  await file.save()
  await appendFile(path, '\0\0\0\n{"tenant_id":7}\n{"tenant_id":"t","hour":-1,"runs":{}}\n')
  observed.note(one, run(hour))
  await file.save()
  const damaged = await start(path)
  t.equal(runsOf(damaged.observed), 2n)
  t.same(damaged.errors, ['3 of 5 lines of observed runs could not be read.'])
  await damaged.file.save()
  t.same((await start(path)).errors, [], 'the rewritten file contains none of them')
})

t.test(
  'Runs reported under former counters stay with them, and later runs go to the new ones, also after a restart',
  async (t) => {
    const path = join(t.testdir({}), 'observed-runs')
    const { observed, file } = await start(path)
    for (const restarted of [false, true]) {
      const tenant = restarted ? other : one
      for (let n = 0; n < 3; n++) observed.note(tenant, run(hour))
      t.equal(runsOf(observed, tenant), 3n)
      t.equal(runsOf(observed, tenant), 3n, 'the same counters receive the same runs')
      for (let n = 0; n < 2; n++) observed.note(tenant, run(hour))
      await file.save()
      const next = restarted ? (await start(path)).observed : observed
      t.equal(runsOf(next, tenant, newCounters), 2n)
      next.note(tenant, run(hour + hourMilliseconds))
      t.equal(runsOf(next, tenant, newCounters), 3n)
    }
  },
)

t.test('The file has a maximum size, and nothing is written while nothing changes', async (t) => {
  const path = join(t.testdir({}), 'observed-runs')
  const { observed, file } = await start(path)
  let largest = 0
  for (let n = 0; n < 300; n++) {
    for (let tenant = 0; tenant < 50; tenant++)
      observed.note(`t_${String(tenant).padStart(20, '0')}`, run(hour + n * hourMilliseconds))
    await file.save()
    largest = Math.max(largest, (await stat(path)).size)
  }
  t.ok(largest > 100_000 && largest <= 1_100_000, `${largest} bytes`)
  const { mtimeMs } = await stat(path)
  await file.save()
  t.equal((await stat(path)).mtimeMs, mtimeMs)
  t.equal(runsOf((await start(path)).observed), 48n, 'two days of each tenant')
})

t.test('A failed write is reported once, and the runs are stored once the disk accepts them', async (t) => {
  const directory = t.testdir({})
  const path = join(directory, 'data', 'observed-runs')
  await writeFile(join(directory, 'data'), 'in the way')
  const { observed, file, errors } = await start(path)
  errors.length = 0
  for (let n = 0; n < 3; n++) {
    observed.note(one, run(hour))
    await file.save()
  }
  t.same(errors, ['The observed runs could not be stored.'])
  await rm(join(directory, 'data'))
  await mkdir(join(directory, 'data'))
  await file.save()
  t.equal(runsOf((await start(path)).observed), 3n)
  await truncate(path, 0)
  await rm(path)
  observed.note(one, run(hour))
  await file.save()
  t.equal(runsOf((await start(path)).observed), 4n, 'a removed file starts again with its tenants as they change')
})

t.test('A tenant that empties its tables while its runtime is killed hides no run', { timeout: 120_000 }, async (t) => {
  const scene = await openScene(t)
  const control = await openControl(t, scene)
  let runtime = await startProcess(t, scene, control, {})
  const client: Requester = {
    request: (method, path, { body, headers } = {}) => runtime.request(method, path, body, headers),
  }
  t.equal((await deploy(client, { name: 'one', wasm: command() })).status, 201)
  for (let n = 0; n < 3; n++)
    t.equal((await client.request('POST', '/functions/v1/invoke/one', { as: 'service' })).status, 200)
  const { tenantId } = scene.home
  const path = join(scene.data, 'run-witness', `${shardOf(tenantId)}.ndjson`)
  const stored = async () => runsOf((await start(path)).observed, tenantId)
  for (const deadline = Date.now() + 20_000; (await stored()) < 3n;)
    if (Date.now() > deadline) throw new Error('the runs were not stored')
  await runtime.kill()
  await scene.rows(
    `alter table function_invocations disable trigger user; delete from function_invocations;
      delete from usage_hours; alter table function_invocations enable trigger user`,
  )
  runtime = await startProcess(t, scene, control, {})
  const reportedRuns = async () => {
    const response = await runtime.request('GET', `${internalPaths.tenantRecords(tenantId)}?hours=2`)
    return Value.Parse(HomeCounters, response.json()).hours.reduce(
      (sum, hours) => sum + BigInt(hours.function_invocations),
      0n,
    )
  }
  t.equal(await reportedRuns(), 3n)
  control.manifests.put({ ...scene.manifest, generation: scene.manifest.generation + 1 })
  for (const deadline = Date.now() + 20_000; ;) {
    const health = (await runtime.request('GET', internalPaths.tenantHealth(tenantId))).json()
    if (health['generation'] === scene.manifest.generation + 1) break
    if (Date.now() > deadline) throw new Error(`the change was not applied: ${JSON.stringify(health)}`)
  }
  t.equal(await reportedRuns(), 3n, 'a change of the tenant does not delete them')
})
