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

interface RolloutControllerDeps {
  ledger: RolloutLedger
  regions: ReadonlyMap<string, RolloutRegion>
  probe: Pick<RegionProbe, 'tenantHealth'>
  clock: Clock
  log: Pick<Log, 'info' | 'warn'>
}

const pollMilliseconds = 1_000
const imageMilliseconds = 10_000
/** A rollout that goes on after so many goes on at the next look. */
const stepsAtOnce = 20

/** Runs while this control plane leads. */
export function keepRollouts(deps: RolloutControllerDeps): (leadership: Leadership) => Promise<void> {
  return async ({ epoch, lost }) => {
    const controller = createRolloutController(deps, epoch)
    await repeat(
      {
        clock: deps.clock,
        work: async (signal) => {
          await controller.poll(signal)
          return pollMilliseconds
        },
        onError: (error) => deps.log.warn({ err: error }, 'the rollouts could not be carried on; it is tried again'),
      },
      lost,
    )
  }
}

export function createRolloutController(deps: RolloutControllerDeps, epoch: bigint) {
  const since = deps.clock.now()
  return {
    /** Once: each that is open as far as it goes by now. */
    async poll(signal: AbortSignal): Promise<void> {
      await Promise.all((await deps.ledger.open()).map((rollout) => advance(rollout, deps, { epoch, since }, signal)))
    },
  }
}

async function advance(
  begun: Rollout,
  deps: RolloutControllerDeps,
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
  { regions, clock }: RolloutControllerDeps,
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
  { regions, probe }: RolloutControllerDeps,
  signal: AbortSignal,
) {
  const requestTenant = async ({ id, isolation, observedGeneration }: RolloutSubject) => {
    const urls = regions.get(rollout.region)?.runtimeUrls({ isolation }) ?? []
    const reported = await Promise.all(urls.map((url) => probe.tenantHealth(url, id, signal).catch(() => undefined)))
    if (reported.some((health) => health?.status === 'unhealthy')) return [id, 'unhealthy'] as const
    const isHealthy =
      reported.length > 0 &&
      reported.every((health) => health?.status === 'healthy' && health.generation >= observedGeneration)
    return isHealthy ? ([id, 'healthy'] as const) : undefined
  }
  const awaited = new Map(
    rollout.tenants.filter(({ state }) => state === 'moving').map(({ tenantId, generation }) => [tenantId, generation]),
  )
  const requested = subjects.filter(({ id, desired, status, observedGeneration }) => {
    const generation = awaited.get(id)
    return desired === 'active' && status === 'ready' && generation !== undefined && observedGeneration >= generation
  })
  return new Map((await Promise.all(requested.map(requestTenant))).filter((response) => response !== undefined))
}
