// Carries rollouts out: looks, decides, takes one step, and looks again. All that it knows is in the rollout's row.
import type { Clock } from '../platform/clock.ts'
import { type Engine, EngineError } from '../engines/index.ts'
import type { Leadership } from '../platform/leader.ts'
import type { RegionProbe } from '../reconcile/index.ts'
import type { Isolation } from '../stacks/index.ts'
import { repeat } from '../platform/repeat.ts'
import type { Log } from '../platform/log.ts'
import type { Rollout, RolloutSubject } from './rollout.ts'
import { componentError } from './rollout-image.ts'
import { planRollout, type RolloutStep } from './rollout-plan.ts'
import type { RolloutLedger } from './rollout-store.ts'

interface RolloutRegion {
  /** Undefined where no engine holds images. */
  engine: Pick<Engine, 'image'> | undefined
  runtimeUrls(tenant: { isolation: Isolation }): readonly string[]
}

interface RolloutKeeperDeps {
  ledger: RolloutLedger
  regions: ReadonlyMap<string, RolloutRegion>
  probe: Pick<RegionProbe, 'tenantHealth'>
  clock: Clock
  log: Pick<Log, 'info' | 'warn'>
}

const lookMilliseconds = 1_000
const imageMilliseconds = 10_000
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

async function advance(
  begun: Rollout,
  deps: RolloutKeeperDeps,
  { epoch, since }: { epoch: bigint; since: Date },
  signal: AbortSignal,
): Promise<void> {
  const { ledger, clock, log } = deps
  let rollout: Rollout | undefined = begun
  for (let taken = 0; taken < stepsAtOnce && rollout !== undefined && !signal.aborted; taken++) {
    const subjects = await ledger.subjects(rollout)
    const planned = planRollout(
      rollout,
      { subjects, health: await healthOf(rollout, subjects, deps, signal), since },
      clock.now(),
    )
    const step = planned.do === 'move' ? ((await imageFault(rollout, deps, signal)) ?? planned) : planned
    if (step.do === 'wait') return
    if (step.do !== 'record') log.info({ rollout: rollout.id, step }, 'a rollout goes on')
    rollout = await ledger.take(rollout, step, epoch)
    if (step.do === 'finish') return
  }
}

/**
 * What to do instead of the next wave when the image can't be used: it may have been removed since, or the rollout is from
 * before labels were checked.
 */
async function imageFault(
  rollout: Rollout,
  { regions, clock }: RolloutKeeperDeps,
  signal: AbortSignal,
): Promise<RolloutStep | undefined> {
  const { region, component, image, imageId } = rollout
  const engine = regions.get(region)?.engine
  if (engine === undefined) return { do: 'turn-back', error: `the region ${region} has no engine that holds images` }
  try {
    const error = componentError(
      component,
      image,
      await engine.image(imageId, AbortSignal.any([signal, clock.timeout(imageMilliseconds)])),
    )
    return error === undefined ? undefined : { do: 'turn-back', error }
  } catch (error) {
    if (error instanceof EngineError && error.code === 'IMAGE_MISSING') return { do: 'turn-back', error: error.message }
    throw error
  }
}

/** Asked are those that are to be seen well; all of a tenant's runtimes must be. */
async function healthOf(
  rollout: Rollout,
  subjects: readonly RolloutSubject[],
  { regions, probe }: RolloutKeeperDeps,
  signal: AbortSignal,
) {
  const askTenant = async ({ id, isolation, observedGeneration }: RolloutSubject) => {
    const urls = regions.get(rollout.region)?.runtimeUrls({ isolation }) ?? []
    const told = await Promise.all(urls.map((url) => probe.tenantHealth(url, id, signal).catch(() => undefined)))
    if (told.some((health) => health?.status === 'unhealthy')) return [id, 'unhealthy'] as const
    const isHealthy =
      told.length > 0 && told.every((health) => health?.status === 'healthy' && health.generation >= observedGeneration)
    return isHealthy ? ([id, 'healthy'] as const) : undefined
  }
  const awaited = new Map(
    rollout.tenants.filter(({ state }) => state === 'moving').map(({ tenantId, generation }) => [tenantId, generation]),
  )
  const asked = subjects.filter(({ id, desired, status, observedGeneration }) => {
    const generation = awaited.get(id)
    return desired === 'active' && status === 'ready' && generation !== undefined && observedGeneration >= generation
  })
  return new Map((await Promise.all(asked.map(askTenant))).filter((answer) => answer !== undefined))
}
