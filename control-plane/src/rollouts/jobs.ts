// Carries out rollouts: it observes, plans, takes one step, and repeats. All its state is in the rollout's row.
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
import type { RolloutLedger } from './store-ledger.ts'

interface RolloutRegion {
  /** Engine that stores images; undefined if the region has none. */
  engine: Pick<Engine, 'image'> | undefined
  runtimeUrls(tenant: { id: string; isolation: Isolation }): readonly string[]
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
/** Maximum number of steps of a rollout per poll. Further steps follow at the next poll. */
const maxStepsPerPoll = 20

/** Creates the leader's job that carries out rollouts. */
export function runRollouts(deps: RolloutControllerDeps): (leadership: Leadership) => Promise<void> {
  return async ({ epoch, lost }) => {
    const controller = createRolloutController(deps, epoch)
    await repeat(
      {
        clock: deps.clock,
        work: async (signal) => {
          await controller.poll(signal)
          return pollMilliseconds
        },
        onError: (error) => deps.log.warn({ err: error }, 'The rollouts could not be continued. The work is retried.'),
      },
      lost,
    )
  }
}

export function createRolloutController(deps: RolloutControllerDeps, epoch: bigint) {
  const since = deps.clock.now()
  return {
    /** Advances each open rollout as far as it can go now. */
    async poll(signal: AbortSignal): Promise<void> {
      await Promise.all((await deps.ledger.open()).map((rollout) => advance(rollout, deps, { epoch, since }, signal)))
    },
  }
}

async function advance(
  current: Rollout,
  deps: RolloutControllerDeps,
  { epoch, since }: { epoch: bigint; since: Date },
  signal: AbortSignal,
): Promise<void> {
  const { ledger, clock, log } = deps
  let rollout: Rollout | undefined = current
  for (let taken = 0; taken < maxStepsPerPoll && rollout !== undefined && !signal.aborted; taken++) {
    const subjects = await ledger.subjects(rollout)
    const planned = planRollout(
      rollout,
      { subjects, health: await healthOf(rollout, subjects, deps, signal), since },
      clock.now(),
    )
    const step = planned.do === 'move' ? ((await imageFault(rollout, deps, signal)) ?? planned) : planned
    if (step.do === 'wait') return
    if (step.do !== 'record') log.info({ rollout: rollout.id, step }, 'A rollout continues.')
    rollout = await ledger.take(rollout, step, epoch)
    if (step.do === 'finish') return
  }
}

/**
 * Returns the step that replaces the next wave if the image cannot be used: it may have been removed, or the rollout is
 * older than the check of labels.
 */
async function imageFault(
  rollout: Rollout,
  { regions, clock }: RolloutControllerDeps,
  signal: AbortSignal,
): Promise<RolloutStep | undefined> {
  const { region, component, image, imageId } = rollout
  const engine = regions.get(region)?.engine
  if (engine === undefined)
    return { do: 'roll-back', error: `The region "${region}" has no engine that stores images.` }
  try {
    const error = componentError(
      component,
      image,
      await engine.image(imageId, AbortSignal.any([signal, clock.timeout(imageMilliseconds)])),
    )
    return error === undefined ? undefined : { do: 'roll-back', error }
  } catch (error) {
    if (error instanceof EngineError && error.code === 'IMAGE_MISSING') return { do: 'roll-back', error: error.message }
    throw error
  }
}

/** Reads the health of the tenants in progress. All runtimes of a tenant must be healthy. */
async function healthOf(
  rollout: Rollout,
  subjects: readonly RolloutSubject[],
  { regions, probe }: RolloutControllerDeps,
  signal: AbortSignal,
) {
  const tenantHealth = async ({ id, isolation, observedGeneration }: RolloutSubject) => {
    const urls = regions.get(rollout.region)?.runtimeUrls({ id, isolation }) ?? []
    const reports = await Promise.all(urls.map((url) => probe.tenantHealth(url, id, signal).catch(() => undefined)))
    if (reports.some((health) => health?.status === 'unhealthy')) return [id, 'unhealthy'] as const
    const isHealthy =
      reports.length > 0 &&
      reports.every((health) => health?.status === 'healthy' && health.generation >= observedGeneration)
    return isHealthy ? ([id, 'healthy'] as const) : undefined
  }
  const awaited = new Map(
    rollout.tenants.filter(({ state }) => state === 'moving').map(({ tenantId, generation }) => [tenantId, generation]),
  )
  const candidates = subjects.filter(({ id, desired, status, observedGeneration }) => {
    const generation = awaited.get(id)
    return desired === 'active' && status === 'ready' && generation !== undefined && observedGeneration >= generation
  })
  return new Map((await Promise.all(candidates.map(tenantHealth))).filter((response) => response !== undefined))
}
