// Runs whole rollouts in a simulated region, with random failures, deletions and cancellations of tenants.
import fc from 'fast-check'
import t from 'tap'
import type { MovedTenant, Rollout, RolloutSubject } from '#control-plane/rollouts/rollout.ts'
import {
  isReady,
  isResting,
  isReturnable,
  planRollout,
  type RolloutObservations,
  type RolloutStep,
} from '#control-plane/rollouts/rollout-plan.ts'
import { at, moved, rollout, subject } from './support/rollout-parts.ts'

/** The random behaviour of one tenant in a simulated rollout. */
interface TenantBehaviour {
  /** Seconds until the tenant is ready after a change. */
  readyAfterSeconds: number
  failure: 'never' | 'fails' | 'gets unhealthy' | 'stays silent'
  desired: 'active' | 'paused' | 'suspended'
  deletedAt: number | null
  cancelAt: number | null
}

/** Runs a rollout to its end. Each tenant reconciles and fails as its `TenantBehaviour` defines. */
function simulate(behaviours: readonly TenantBehaviour[], waveSize: number) {
  let current = rollout({ waveSize, soakSeconds: 3, deadlineSeconds: 20 })
  const subjects = behaviours.map(({ desired }, index) =>
    subject(`t${index}`, desired === 'active' ? {} : { desired, status: desired }),
  )
  const readyAt = new Map<string, number>()
  let maxMoving = 0
  const changeImage = (one: RolloutSubject, image: string, now: number) => {
    one.image = image
    one.generation++
    one.operations = ['upgrade']
    readyAt.set(one.id, now + (behaviours[subjects.indexOf(one)]?.readyAfterSeconds ?? 0))
    return one.generation
  }
  const find = (id: string) => subjects.find((one) => one.id === id) ?? subject(id)
  const present = (now: number) => subjects.filter((_, index) => (behaviours[index]?.deletedAt ?? Infinity) > now)
  const hasFailure = (one: RolloutSubject, index: number, how: TenantBehaviour['failure']) =>
    one.image === 'new' && behaviours[index]?.failure === how

  const applyStep = (step: Exclude<RolloutStep, { do: 'wait' }>, now: number): Rollout => {
    if (step.do === 'record') return { ...current, tenants: step.tenants }
    if (step.do === 'roll-back') return { ...current, state: 'rolling_back', error: step.error }
    if (step.do === 'finish') return { ...current, state: step.state, error: step.error, finishedAt: at(now) }
    if (step.do === 'return') {
      const returnTenant = (one: MovedTenant): MovedTenant =>
        step.tenantIds.includes(one.tenantId) && isReturnable(find(one.tenantId))
          ? { ...one, state: 'returning', generation: changeImage(find(one.tenantId), one.from, now), movedAt: at(now) }
          : one
      return { ...current, tenants: current.tenants.map(returnTenant) }
    }
    const chosen = step.tenantIds.map(find).filter(step.wave === 0 ? isResting : isReady)
    const newlyMoved = chosen.map((one) =>
      moved(one.id, {
        wave: step.wave,
        state: step.wave === 0 ? 'moved' : 'moving',
        generation: changeImage(one, 'new', now),
        movedAt: at(now),
      }),
    )
    return { ...current, wave: Math.max(current.wave, step.wave), tenants: [...current.tenants, ...newlyMoved] }
  }

  let now = 0
  for (; now < 2_000 && current.finishedAt === undefined; now++) {
    for (const [index, one] of subjects.entries()) {
      if (one.observedGeneration < one.generation && (readyAt.get(one.id) ?? 0) <= now) {
        one.status =
          hasFailure(one, index, 'fails') && one.desired === 'active'
            ? 'failed'
            : one.desired === 'active'
              ? 'ready'
              : one.status
        if (one.status !== 'failed') [one.observedGeneration, one.operations] = [one.generation, []]
      }
    }
    if (behaviours.some(({ cancelAt }) => cancelAt === now) && current.state === 'running')
      current = { ...current, state: 'rolling_back', error: 'cancelled' }
    for (;;) {
      const health = new Map<string, 'healthy' | 'unhealthy'>()
      for (const [index, one] of subjects.entries()) {
        if (hasFailure(one, index, 'gets unhealthy') && now > (readyAt.get(one.id) ?? 0) + 1)
          health.set(one.id, 'unhealthy')
        else if (!hasFailure(one, index, 'stays silent')) health.set(one.id, 'healthy')
      }
      const statusSource: RolloutObservations = { subjects: present(now), health, since: at(0) }
      const step = planRollout(current, statusSource, at(now))
      if (step.do === 'wait') break
      current = applyStep(step, now)
      maxMoving = Math.max(maxMoving, current.tenants.filter(({ state }) => state === 'moving').length)
      if (step.do === 'finish') break
    }
  }
  return { rollout: current, subjects: present(now), maxMoving }
}

t.test(
  'every rollout ends with all tenants on the new image or all on the old, and no wave exceeds its size',
  async (t) => {
    const behaviour: fc.Arbitrary<TenantBehaviour> = fc.record({
      readyAfterSeconds: fc.integer({ min: 0, max: 15 }),
      failure: fc.oneof(
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
    const outcomes = { succeeded: 0, rolled_back: 0, other: 0 }
    const holds = fc.property(
      fc.array(behaviour, { maxLength: 40 }),
      fc.integer({ min: 1, max: 16 }),
      (behaviours, waveSize) => {
        const { rollout, subjects, maxMoving } = simulate(behaviours, waveSize)
        outcomes[rollout.state === 'succeeded' || rollout.state === 'rolled_back' ? rollout.state : 'other']++
        const image = rollout.state === 'succeeded' ? 'new' : 'old'
        return (
          maxMoving <= waveSize &&
          rollout.finishedAt !== undefined &&
          subjects.every((one) => one.image === image && one.status !== 'failed')
        )
      },
    )
    fc.assert(holds, { seed: 20_260_301, numRuns: 400 })
    t.ok(outcomes.succeeded > 20 && outcomes.rolled_back > 20, `both outcomes occurred: ${JSON.stringify(outcomes)}`)
    t.equal(outcomes.other, 0)
  },
)
