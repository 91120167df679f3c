// Kills the runtime with SIGKILL at every failpoint of storage and at random moments, under sixteen writers. Afterwards
// every acknowledged change is present and whole. After a sweep every row has a file and every file has a row
// (specification, FS-I1).
import t from 'tap'
import { storageFailpointNames } from '#tenant-runtime/storage/failpoints.ts'
import { chanceOf } from '#test/simulation/chance.ts'
import { effort, seed } from '#test/support/effort.ts'
import { inspect, sound } from './support/inspect.ts'
import { openControl, startProcess } from './support/runtime-process.ts'
import { openScene } from './support/scene.ts'
import { Load, databaseIsAway } from './support/writers.ts'

/** Longer than any failpoint takes to be reached; after that the kill comes at any moment. */
const maxLoad = 5_000

t.test(
  'Storage survives SIGKILL under sixteen writers, at every failpoint and at random moments',
  { timeout: 14_400_000 },
  async (t) => {
    const scene = await openScene(t)
    const control = await openControl(t, scene)
    // The first start fills the compile cache, so that the others start faster.
    await (await startProcess(t, scene, control, {})).stop()
    const chance = chanceOf(seed)
    // A busy machine may not let the runtime connect in time.
    const load = new Load(seed, { unsure: databaseIsAway })
    // A kill without a failpoint comes at a random moment.
    const each = storageFailpointNames.flatMap((name) =>
      Array.from({ length: effort({ small: 1, full: 10 }) }, () => name),
    )
    const random = Array.from({ length: effort({ small: 4, full: 110 }) }, () => undefined)
    const crashes = [...each, ...random]
      .map((name) => ({ name, order: chance.next() }))
      .sort((a, b) => a.order - b.order)
      .slice(0, effort({ small: 6, full: 1_000 }))
    const hit = new Set<string>()
    let before = 'before any crash'
    for (const [round, { name }] of crashes.entries()) {
      const runtime = await startProcess(
        t,
        scene,
        control,
        name === undefined ? {} : { failpoints: `${name}=kill:${1 + chance.below(4)}` },
      )
      if (round === 0) await load.begin(runtime.request)
      else t.same(await inspect(scene, runtime.request, load), sound, before)
      const late = new AbortController()
      late.signal.addEventListener('abort', () => void runtime.kill())
      const timer = setTimeout(() => late.abort(), name === undefined ? chance.below(1_000) : maxLoad)
      await load.run(runtime.request, runtime.dead)
      clearTimeout(timer)
      if (name !== undefined && !late.signal.aborted) hit.add(name)
      await runtime.kill()
      before = `after crash ${round + 1}, ${name ?? 'at random'}`
    }
    const { request } = await startProcess(t, scene, control, {})
    t.same(await inspect(scene, request, load), sound, before)
    t.same(load.wrong, [], 'every response was correct')
    t.comment(
      `${crashes.length} crashes, failpoints hit ${hit.size} of ${storageFailpointNames.length}, ` +
        `responses ${JSON.stringify([...load.responses])}, seed ${seed}`,
    )
    t.same(
      [...hit].sort(),
      [...new Set(crashes.flatMap(({ name }) => name ?? []))].sort(),
      'every armed failpoint was reached',
    )
  },
)

t.test('The test detects a runtime that unlinks files before it commits', async (t) => {
  const scene = await openScene(t)
  const control = await openControl(t, scene)
  const load = new Load(seed)
  const hasty = await startProcess(t, scene, control, {
    main: new URL('support/hasty-runtime.ts', import.meta.url).pathname,
  })
  await load.begin(hasty.request)
  await load.run(hasty.request, hasty.dead)
  await hasty.kill()
  const { request } = await startProcess(t, scene, control, {})
  const { phantoms } = await inspect(scene, request, load)
  t.equal(phantoms.length, 1, `found: ${phantoms.join(', ')}`)
})
