// What the runtime has seen of functions' runs outlives its process: whole, torn, damaged and missing files, other books, and a kill.
import { appendFile, mkdir, readFile, rm, stat, truncate, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { HomeCounters, internalPaths } from '@tenantry/contract'
import t from 'tap'
import { Value } from 'typebox/value'
import { hourMilliseconds } from '@tenantry/contract'
import { ObservedRuns } from '#tenant-runtime/metering/observed-runs.ts'
import { ObservedRunsFile } from '#tenant-runtime/metering/observed-runs-file.ts'
import { deploy, type Asker } from '#test/functions/support/deployed.ts'
import { command } from '#test/functions/support/wasm.ts'
import { openControl, startProcess } from '#test/storage/support/runtime-process.ts'
import { openScene } from '#test/storage/support/scene.ts'

const hour = Date.UTC(2026, 10, 22, 3)
const [one, other] = ['t_00000000000000000001', 't_00000000000000000002']
const [books, newCounters] = ['00000000-0000-4000-8000-000000000001', '00000000-0000-4000-8000-000000000002']
const run = (at: number) => ({ begun: { at }, durationMilliseconds: 20, cpuMicroseconds: 7_000, memoryPeak: 2_048 })

function runsOf(observed: ObservedRuns, tenantId = one, of = books): bigint {
  return [...observed.report(tenantId, of).values()].reduce(
    (sum, { functionInvocations }) => sum + functionInvocations,
    0n,
  )
}

/** A start of a runtime on the file. */
async function start(path: string) {
  const observed = new ObservedRuns()
  const errors: string[] = []
  const file = new ObservedRunsFile({ path, observed, onError: ({ message }) => errors.push(message) })
  await file.load()
  return { observed, file, problems: errors }
}

t.test('what was kept is what a later start goes on from, of each tenant, hour and amount', async (t) => {
  const path = join(t.testdir({}), 'deep', 'witness')
  const first = await start(path)
  t.same(first.problems, [], 'a missing file is an empty one')
  for (const at of [hour, hour + 1, hour + hourMilliseconds]) first.observed.note(one, run(at))
  first.observed.note(other, run(hour))
  await first.file.save()
  first.observed.note(one, run(hour + 2))
  await first.file.save()
  const second = await start(path)
  t.same(
    second.observed.report(one, books),
    new Map([
      [
        hour,
        {
          functionInvocations: 3n,
          functionMilliseconds: 60n,
          functionCpuMicroseconds: 21_000n,
          functionMemoryKibMilliseconds: 120n,
        },
      ],
      [
        hour + hourMilliseconds,
        {
          functionInvocations: 1n,
          functionMilliseconds: 20n,
          functionCpuMicroseconds: 7_000n,
          functionMemoryKibMilliseconds: 40n,
        },
      ],
    ]),
  )
  t.equal(runsOf(second.observed, other), 1n)
  second.observed.evict(other)
  await second.file.save()
  const third = await start(path)
  t.same(
    [runsOf(third.observed), runsOf(third.observed, other), third.problems],
    [4n, 0n, []],
    'who is gone is forgotten',
  )
  t.equal((await stat(path)).mode & 0o077, 0)
})

t.test('of a file that is torn anywhere all whole lines count, and the next start has them still', async (t) => {
  const path = join(t.testdir({}), 'witness')
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

t.test('lines that were damaged are told and passed by', async (t) => {
  const path = join(t.testdir({}), 'witness')
  const { observed, file } = await start(path)
  observed.note(one, run(hour))
  await file.save()
  await appendFile(path, '\0\0\0\n{"tenant_id":7}\n{"tenant_id":"t","hour":-1,"runs":{}}\n')
  observed.note(one, run(hour))
  await file.save()
  const damaged = await start(path)
  t.equal(runsOf(damaged.observed), 2n)
  t.same(damaged.problems, ["3 of 5 lines about functions' runs could not be read"])
  await damaged.file.save()
  t.same((await start(path)).problems, [], 'what is written anew has none of them')
})

t.test(
  'what was told under other books stays theirs, and what was seen since is told under the new ones, over a restart too',
  async (t) => {
    const path = join(t.testdir({}), 'witness')
    const { observed, file } = await start(path)
    for (const restarted of [false, true]) {
      const tenant = restarted ? other : one
      for (let n = 0; n < 3; n++) observed.note(tenant, run(hour))
      t.equal(runsOf(observed, tenant), 3n)
      t.equal(runsOf(observed, tenant), 3n, 'the same books are told the same')
      for (let n = 0; n < 2; n++) observed.note(tenant, run(hour))
      await file.save()
      const next = restarted ? (await start(path)).observed : observed
      t.equal(runsOf(next, tenant, newCounters), 2n)
      next.note(tenant, run(hour + hourMilliseconds))
      t.equal(runsOf(next, tenant, newCounters), 3n)
    }
  },
)

t.test('the file does not grow without bound, and nothing is written while nothing happens', async (t) => {
  const path = join(t.testdir({}), 'witness')
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
  t.equal(runsOf((await start(path)).observed), 48n, 'of each tenant two days')
})

t.test('what a disk does not take is told once, and is there as soon as it does', async (t) => {
  const directory = t.testdir({})
  const path = join(directory, 'data', 'witness')
  await writeFile(join(directory, 'data'), 'in the way')
  const { observed, file, problems: errors } = await start(path)
  errors.length = 0
  for (let n = 0; n < 3; n++) {
    observed.note(one, run(hour))
    await file.save()
  }
  t.same(errors, ["what was seen of functions' runs could not be kept"])
  await rm(join(directory, 'data'))
  await mkdir(join(directory, 'data'))
  await file.save()
  t.equal(runsOf((await start(path)).observed), 3n)
  await truncate(path, 0)
  await rm(path)
  observed.note(one, run(hour))
  await file.save()
  t.equal(
    runsOf((await start(path)).observed),
    4n,
    'a file that somebody has removed begins anew with its tenants as they change',
  )
})

t.test('a tenant that empties its tables while its runtime is killed hides no run', { timeout: 120_000 }, async (t) => {
  const scene = await openScene(t)
  const control = await openControl(t, scene)
  let runtime = await startProcess(t, scene, control, {})
  const asker: Asker = {
    request: (method, path, { body, headers } = {}) => runtime.request(method, path, body, headers),
  }
  t.equal((await deploy(asker, { name: 'one', wasm: command() })).status, 201)
  for (let n = 0; n < 3; n++)
    t.equal((await asker.request('POST', '/functions/v1/invoke/one', { as: 'service' })).status, 200)
  const path = join(scene.data, 'run-witness.ndjson')
  const { tenantId } = scene.home
  const stored = async () => runsOf((await start(path)).observed, tenantId)
  for (const deadline = Date.now() + 20_000; (await stored()) < 3n;)
    if (Date.now() > deadline) throw new Error('the runs were not kept')
  await runtime.kill()
  await scene.rows(
    `alter table function_invocations disable trigger user; delete from function_invocations;
      delete from usage_hours; alter table function_invocations enable trigger user`,
  )
  runtime = await startProcess(t, scene, control, {})
  const reported = async () => {
    const response = await runtime.request('GET', `${internalPaths.tenantRecords(tenantId)}?hours=2`)
    return Value.Parse(HomeCounters, response.json()).hours.reduce(
      (sum, hours) => sum + BigInt(hours.function_invocations),
      0n,
    )
  }
  t.equal(await reported(), 3n)
  control.manifests.put({ ...scene.manifest, generation: scene.manifest.generation + 1 })
  for (const deadline = Date.now() + 20_000; ;) {
    const health = (await runtime.request('GET', internalPaths.tenantHealth(tenantId))).json()
    if (health['generation'] === scene.manifest.generation + 1) break
    if (Date.now() > deadline) throw new Error(`the change was not applied: ${JSON.stringify(health)}`)
  }
  t.equal(await reported(), 3n, 'nor does a change of the tenant make them forgotten')
})
