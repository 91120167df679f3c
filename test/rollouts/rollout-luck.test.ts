// Whole rollouts over any luck, in a region that is simulated.
import fc from 'fast-check'
import t from 'tap'
import type { MovedTenant, Rollout, RolloutSubject } from '#control-plane/rollouts/rollout.ts'
import {
  isReady,
  isResting,
  isReturnable,
  planRollout,
  type RolloutStatusSource,
  type RolloutStep,
} from '#control-plane/rollouts/rollout-plan.ts'
import { at, moved, rollout, subject } from './support/rollout-parts.ts'

/** What becomes of a tenant in a simulated rollout. */
interface Fate {
  /** Seconds until it is up with a change. */
  takes: number
  breaks: 'never' | 'fails' | 'gets unhealthy' | 'stays silent'
  desired: 'active' | 'paused' | 'suspended'
  deletedAt: number | null
  cancelAt: number | null
}

/** A region in which the reconciler works as fate has it. */
function simulate(fates: readonly Fate[], waveSize: number) {
  let current = rollout({ waveSize, soakSeconds: 3, deadlineSeconds: 20 })
  const subjects = fates.map(({ desired }, index) =>
    subject(`t${index}`, desired === 'active' ? {} : { desired, status: desired }),
  )
  const upAt = new Map<string, number>()
  let max = 0
  const raise = (one: RolloutSubject, image: string, now: number) => {
    one.image = image
    one.generation++
    one.operations = ['upgrade']
    upAt.set(one.id, now + (fates[subjects.indexOf(one)]?.takes ?? 0))
    return one.generation
  }
  const find = (id: string) => subjects.find((one) => one.id === id) ?? subject(id)
  const present = (now: number) => subjects.filter((_, index) => (fates[index]?.deletedAt ?? Infinity) > now)
  const isBroken = (one: RolloutSubject, index: number, how: Fate['breaks']) =>
    one.image === 'new' && fates[index]?.breaks === how

  const take = (step: Exclude<RolloutStep, { do: 'wait' }>, now: number): Rollout => {
    if (step.do === 'record') return { ...current, tenants: step.tenants }
    if (step.do === 'turn-back') return { ...current, state: 'rolling_back', error: step.error }
    if (step.do === 'finish') return { ...current, state: step.state, error: step.error, finishedAt: at(now) }
    if (step.do === 'return') {
      const back = (one: MovedTenant): MovedTenant =>
        step.tenantIds.includes(one.tenantId) && isReturnable(find(one.tenantId))
          ? { ...one, state: 'returning', generation: raise(find(one.tenantId), one.from, now), movedAt: at(now) }
          : one
      return { ...current, tenants: current.tenants.map(back) }
    }
    const chosen = step.tenantIds.map(find).filter(step.wave === 0 ? isResting : isReady)
    const came = chosen.map((one) =>
      moved(one.id, {
        wave: step.wave,
        state: step.wave === 0 ? 'moved' : 'moving',
        generation: raise(one, 'new', now),
        movedAt: at(now),
      }),
    )
    return { ...current, wave: Math.max(current.wave, step.wave), tenants: [...current.tenants, ...came] }
  }

  let now = 0
  for (; now < 2_000 && current.finishedAt === undefined; now++) {
    for (const [index, one] of subjects.entries()) {
      if (one.observedGeneration < one.generation && (upAt.get(one.id) ?? 0) <= now) {
        one.status =
          isBroken(one, index, 'fails') && one.desired === 'active'
            ? 'failed'
            : one.desired === 'active'
              ? 'ready'
              : one.status
        if (one.status !== 'failed') [one.observedGeneration, one.operations] = [one.generation, []]
      }
    }
    if (fates.some(({ cancelAt }) => cancelAt === now) && current.state === 'running')
      current = { ...current, state: 'rolling_back', error: 'cancelled' }
    for (;;) {
      const health = new Map<string, 'healthy' | 'unhealthy'>()
      for (const [index, one] of subjects.entries()) {
        if (isBroken(one, index, 'gets unhealthy') && now > (upAt.get(one.id) ?? 0) + 1) health.set(one.id, 'unhealthy')
        else if (!isBroken(one, index, 'stays silent')) health.set(one.id, 'healthy')
      }
      const statusSource: RolloutStatusSource = { subjects: present(now), health, since: at(0) }
      const step = planRollout(current, statusSource, at(now))
      if (step.do === 'wait') break
      current = take(step, now)
      max = Math.max(max, current.tenants.filter(({ state }) => state === 'moving').length)
      if (step.do === 'finish') break
    }
  }
  return { rollout: current, subjects: present(now), most: max }
}

t.test(
  'whatever happens it ends: all with the new image, or all with the old, and no wave is larger than asked for',
  async (t) => {
    const fate: fc.Arbitrary<Fate> = fc.record({
      takes: fc.integer({ min: 0, max: 15 }),
      breaks: fc.oneof(
        { weight: 12, arbitrary: fc.constant('never' as const) },
        { weight: 1, arbitrary: fc.constantFrom('fails' as const, 'gets unhealthy' as const, 'stays silent' as const) },
      ),
      desired: fc.oneof(
        { weight: 6, arbitrary: fc.constant('active' as const) },
        { weight: 1, arbitrary: fc.constantFrom('paused' as const, 'suspended' as const) },
      ),
      deletedAt: fc.option(fc.nat(200), { freq: 12 }),
      cancelAt: fc.option(fc.nat(100), { freq: 30 }),
    })
    const ends = { succeeded: 0, rolled_back: 0, other: 0 }
    const holds = fc.property(fc.array(fate, { maxLength: 40 }), fc.integer({ min: 1, max: 16 }), (fates, waveSize) => {
      const { rollout, subjects, most: max } = simulate(fates, waveSize)
      ends[rollout.state === 'succeeded' || rollout.state === 'rolled_back' ? rollout.state : 'other']++
      const image = rollout.state === 'succeeded' ? 'new' : 'old'
      return (
        max <= waveSize &&
        rollout.finishedAt !== undefined &&
        subjects.every((one) => one.image === image && one.status !== 'failed')
      )
    })
    fc.assert(holds, { seed: 20_260_301, numRuns: 400 })
    t.ok(ends.succeeded > 20 && ends.rolled_back > 20, `both ends were seen: ${JSON.stringify(ends)}`)
    t.equal(ends.other, 0)
  },
)
