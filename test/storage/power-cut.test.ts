// Cuts the power under sixteen writers. The disk then loses what was not made durable; the database is on another disk
// and retains what it acknowledged. Needs root to mount the disk.
import t, { type Test } from 'tap'
import { LocalBackend } from '#tenant-runtime/storage/backend/local.ts'
import { chanceOf } from '#test/simulation/chance.ts'
import { effort, seed } from '#test/support/effort.ts'
import { openCuttableDisk } from './support/cuttable-disk.ts'
import { WithoutDirectorySync, WithoutFileSync } from './support/hasty-backends.ts'
import { inspect, sound, type Findings } from './support/inspect.ts'
import { openScene } from './support/scene.ts'
import { serve } from './support/served-storage.ts'
import { Load } from './support/writers.ts'

/** @returns the findings after each cut, as long as all earlier cuts found no damage */
async function cutPower(
  t: Test,
  { backend: Backend, cuts }: { backend: new (root: string) => LocalBackend; cuts: number },
): Promise<{ findings: Findings[]; load: Load }> {
  const disk = await openCuttableDisk(t)
  const scene = await openScene(t, { data: disk.directory })
  const chance = chanceOf(seed)
  // After the power cut uploads fail, and changes that need only the database continue.
  const load = new Load(seed, { unsure: ({ status }) => status === 503 })
  const findings: Findings[] = []
  for (let cut = 0; cut < cuts; cut++) {
    const hasty = await serve(t, scene, { backend: new Backend(scene.blobs) })
    if (cut === 0) await load.begin(hasty.request)
    const wanted = load.acknowledged + 40 + chance.below(80)
    let off: Promise<void> | undefined
    // Half of the cuts come in the midst of the load, the others right after the last response.
    const midst = cut % 2 === 1
    await load.run(hasty.request, () => {
      if (midst && load.acknowledged >= wanted) off ??= disk.cut()
      return load.acknowledged >= wanted + (midst ? 100 : 0)
    })
    await (off ?? disk.cut())
    await hasty.close()
    await disk.restore()
    const served = await serve(t, scene)
    const found = await inspect(scene, served.request, load)
    await served.close()
    findings.push(found)
    if (found.phantoms.length + found.torn.length + found.lost.length > 0) break
  }
  return { findings, load }
}

t.test('Power cuts', { timeout: 3_600_000 }, async (t) => {
  t.test('A power cut loses no acknowledged change and tears no file', async (t) => {
    const { findings, load } = await cutPower(t, { backend: LocalBackend, cuts: effort({ small: 2, full: 40 }) })
    for (const [cut, found] of findings.entries()) t.same(found, sound, `after cut ${cut + 1}`)
    t.same(load.wrong, [], 'every response was correct')
    t.comment(`${findings.length} cuts, ${load.acknowledged} changes acknowledged, seed ${seed}`)
  })

  for (const Backend of [WithoutFileSync, WithoutDirectorySync]) {
    t.test(`The test detects files that a backend ${Backend.name} loses`, async (t) => {
      const { findings } = await cutPower(t, { backend: Backend, cuts: 20 })
      const { phantoms = [], torn = [] } = findings.at(-1) ?? {}
      t.ok(
        phantoms.length + torn.length > 0,
        `after ${findings.length} cuts ${phantoms.length} are lost and ${torn.length} torn`,
      )
    })
  }
})
