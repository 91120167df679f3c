// Postgres crashes and restarts repeatedly under sixteen writers. Affected requests receive 503, no acknowledged change
// is lost, and the runtime recovers without help.
import t from 'tap'
import { effort, seed } from '#test/support/effort.ts'
import { inspect, sound } from './support/inspect.ts'
import { openScene } from './support/scene.ts'
import { serve } from './support/served-storage.ts'
import { Load, databaseIsAway } from './support/writers.ts'

t.test('The runtime recovers from crashes of Postgres under load', { timeout: 3_600_000 }, async (t) => {
  const scene = await openScene(t)
  const { request, idle } = await serve(t, scene)
  const load = new Load(seed, { unsure: databaseIsAway })
  await load.begin(request)
  const crashes = effort({ small: 2, full: 50 })
  for (let crash = 1; crash <= crashes; crash++) {
    const wanted = load.acknowledged + 100
    const hit = (load.responses.get(503) ?? 0) + 1
    let crashed: Promise<void> | undefined
    // Until Postgres responds again and at least one request has failed.
    const back = { is: false }
    await load.run(request, () => {
      if (load.acknowledged >= wanted)
        crashed ??= scene.postgres
          .crash()
          .then(() => (back.is = true))
          .then(() => undefined)
      return back.is && (load.responses.get(503) ?? 0) >= hit && load.acknowledged >= wanted + 100
    })
    await crashed
    await idle()
    t.same(await inspect(scene, request, load), sound, `after crash ${crash}`)
  }
  t.same(load.wrong, [], 'every response was correct, or a 503')
  t.comment(`${crashes} crashes, responses ${JSON.stringify([...load.responses])}, seed ${seed}`)
})
