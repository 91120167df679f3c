// Carries rollouts out: looks, decides, takes one step, and looks again. All that it knows is in the rollout's row.
import type { Clock } from '../clock.ts'
import type { Leadership } from '../persistence/leader.ts'
import type { RegionProbe } from '../reconcile/region-probe.ts'
import type { Isolation } from '../tenants/tenant.ts'
import { repeat } from './repeat.ts'
import type { Rollout, RolloutSubject } from './rollout.ts'
import { planRollout } from './rollout-plan.ts'
import type { RolloutLedger } from './rollout-store.ts'

export interface RolloutKeeperDeps {
  ledger: RolloutLedger
  regions: ReadonlyMap<string, { runtimeUrls(tenant: { isolation: Isolation }): readonly string[] }>
  probe: Pick<RegionProbe, 'tenantHealth'>
  clock: Clock
  log: { info(details: object, message: string): void; warn(details: object, message: string): void }
}

const lookMilliseconds = 1_000
/** A rollout that goes on after so many goes on at the next look. */
const stepsAtOnce = 20

/** Runs while this control plane leads. */
export function keepRollouts(deps: RolloutKeeperDeps): (leadership: Leadership) => Promise<void> {
  return async ({ epoch, lost }) => {
    const keeper = createRolloutKeeper(deps, epoch)
    await repeat(
      {
        clock: deps.clock,
        work: async (signal) => {
          await keeper.look(signal)
          return lookMilliseconds
        },
        onProblem: (error) => deps.log.warn({ err: error }, 'the rollouts could not be carried on; it is tried again'),
      },
      lost,
    )
  }
}

export function createRolloutKeeper(deps: RolloutKeeperDeps, epoch: bigint) {
  const since = deps.clock.now()
  return {
    /** Once: each that is open as far as it goes by now. */
    async look(signal: AbortSignal): Promise<void> {
      await Promise.all((await deps.ledger.open()).map((rollout) => advance(rollout, deps, { epoch, since }, signal)))
    },
  }
}

async function advance(begun: Rollout, deps: RolloutKeeperDeps, { epoch, since }: { epoch: bigint; since: Date }, signal: AbortSignal): Promise<void> {
  const { ledger, clock, log } = deps
  let rollout: Rollout | undefined = begun
  for (let taken = 0; taken < stepsAtOnce && rollout !== undefined && !signal.aborted; taken++) {
    const subjects = await ledger.subjects(rollout)
    const step = planRollout(rollout, { subjects, health: await healthOf(rollout, subjects, deps, signal), since }, clock.now())
    if (step.do === 'wait') return
    if (step.do !== 'record') log.info({ rollout: rollout.id, step }, 'a rollout goes on')
    rollout = await ledger.take(rollout, step, epoch)
    if (step.do === 'finish') return
  }
}

/** Asked are those that are to be seen well; all of a tenant's runtimes must be. */
async function healthOf(rollout: Rollout, subjects: readonly RolloutSubject[], { regions, probe }: RolloutKeeperDeps, signal: AbortSignal) {
  const askTenant = async ({ id, isolation, observedGeneration }: RolloutSubject) => {
    const urls = regions.get(rollout.region)?.runtimeUrls({ isolation }) ?? []
    const told = await Promise.all(urls.map((url) => probe.tenantHealth(url, id, signal).catch(() => undefined)))
    if (told.some((health) => health?.status === 'unhealthy')) return [id, 'unhealthy'] as const
    const isHealthy = told.length > 0 && told.every((health) => health?.status === 'healthy' && health.generation >= observedGeneration)
    return isHealthy ? ([id, 'healthy'] as const) : undefined
  }
  const awaited = new Map(rollout.tenants.filter(({ state }) => state === 'moving').map(({ tenantId, generation }) => [tenantId, generation]))
  const asked = subjects.filter(({ id, desired, status, observedGeneration }) => {
    const generation = awaited.get(id)
    return desired === 'active' && status === 'ready' && generation !== undefined && observedGeneration >= generation
  })
  return new Map((await Promise.all(asked.map(askTenant))).filter((answer) => answer !== undefined))
}
