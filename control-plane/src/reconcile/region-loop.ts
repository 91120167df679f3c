// What a region needs beside its tenants: its own stack, an ear on its engine, a look at everything from time to time.
import type { Clock } from '../platform/clock.ts'
import type { Log } from '../platform/log.ts'
import { planSteps, type ObservedHost, type Engine, EngineError } from '../engines/index.ts'
import { volumeName, type Stack } from '../stacks/index.ts'
import { OrphanSweeper, partOf } from './orphan-sweeper.ts'
import type { ReconcileStore, Snapshot } from './reconcile-store.ts'
import { LeadershipLost } from '../platform/leadership-lost.ts'
import { isDedicated, type Region } from './region.ts'
import type { RegionConditions } from './region-conditions.ts'

interface RegionLoopDeps {
  region: Region
  engine: Engine
  store: ReconcileStore
  clock: Clock
  epoch: bigint
  orphanGraceSeconds: number
  /** Ids of all regions' own stacks: several regions may be on one engine. */
  regionStacks: readonly string[]
  /** Puts a tenant into the queue. */
  wake: (tenantId: string) => void
  /** The engine can be looked at again. */
  recovered: () => void
  conditions: Pick<RegionConditions, 'ready' | 'failed'>
  /** Told of every look at the whole region. */
  measure: (sweep: { seconds: number; orphans: number; removed: number; corrected: boolean }) => void
  log: Pick<Log, 'info' | 'warn'>
}

const convergeMilliseconds = 180_000
const observeMilliseconds = 30_000
/** Between two tries to hear the engine's events. */
const reconnectMilliseconds = 1_000

interface RegionLoop {
  /** Looks at everything; mends the region's own stack, wakes tenants that differ, removes orphans. Never throws. */
  sweep(): Promise<void>
  /** Hears the engine's events until aborted. */
  listen(): Promise<void>
}

export function createRegionLoop(deps: RegionLoopDeps, signal: AbortSignal): RegionLoop {
  const { region, engine, store, clock, epoch, wake, log } = deps
  const stopped = () => signal.aborted
  const ownStack = region.stackId
  const sweeper = new OrphanSweeper({
    engine,
    clock,
    graceSeconds: deps.orphanGraceSeconds,
    known: async () => new Set([...deps.regionStacks, ...(await store.tenantIds())]),
    deleted: (stacks) => store.deletedTenants(stacks),
    removed: (stack) => store.freeSubnet(stack, epoch),
    onRemoved: (stack) =>
      log.info({ region: region.config.id, stack }, 'what was left of a deleted tenant was removed'),
    onError: (error) => log.warn({ region: region.config.id, err: error }, error.message),
  })

  /** What is wrong with all of the region is said of it, not of its tenants. */
  const complain = (error: unknown, message: string) => {
    if (stopped() || error instanceof LeadershipLost) return
    deps.conditions.failed(region.config.id, error, message)
    log.warn({ region: region.config.id, err: error }, message)
  }

  /** @returns whether something had to be done */
  const convergeOwn = async (host: ObservedHost): Promise<boolean> => {
    const hasHomes = await store.hasHomes(region.config.id)
    const stack = await region.ownStack(hasHomes, AbortSignal.any([signal, clock.timeout(observeMilliseconds)]))
    if (stack === undefined) return false
    const own = partOf(host, ownStack)
    const lost = lostVolumes(stack, own)
    if (lost.length > 0)
      complain(
        new EngineError('VOLUME_MISSING', `volumes of the region that held data are gone: ${lost.join(', ')}`),
        'what stands on volumes of the region that are gone is not started',
      )
    const present = withoutVolumes(stack, lost)
    const differs = planSteps(present, own).length > 0
    if (differs)
      await engine.converge(present, AbortSignal.any([signal, clock.timeout(convergeMilliseconds)]), (edge) =>
        edge === 'before' ? store.confirmLead(epoch) : undefined,
      )
    if (lost.length === 0 && !stopped()) deps.conditions.ready(region.config.id)
    return differs
  }

  const differing = async (host: ObservedHost): Promise<string[]> => {
    const tenants = await store.settledDedicated(region.config.id)
    const differs = async (tenant: Snapshot) => {
      if (!isDedicated(tenant)) return false
      const steps = planOrFault(await region.stack(tenant, signal), partOf(host, tenant.id))
      return steps || tenant.conditions.some(({ type }) => type === 'Drift')
    }
    const responses = await Promise.all(tenants.map(async (tenant) => ((await differs(tenant)) ? [tenant.id] : [])))
    return responses.flat()
  }

  let sweeping: Promise<void> | undefined
  /** Asked for while one was under way. */
  let again = false
  const requestedAgain = () => again
  let isReached = true
  const poll = async (): Promise<ObservedHost> => {
    const wasReached = isReached
    isReached = false
    const host = await engine.observe(undefined, AbortSignal.any([signal, clock.timeout(observeMilliseconds)]))
    isReached = true
    if (!wasReached) deps.recovered()
    return host
  }
  const sweepOnce = async (): Promise<void> => {
    const begin = clock.now().getTime()
    const host = await poll()
    // Tenants with services of their own are looked after whatever is wrong with what the others share.
    const corrected = await convergeOwn(host).catch((error: unknown) => {
      complain(error, "the region's own services could not be brought to the wanted state; it is tried again")
      return false
    })
    // Everybody's network changes with the gateway.
    const seen = corrected ? await poll() : host
    const woken = await differing(seen).catch((error: unknown) => {
      if (!stopped())
        log.warn(
          { region: region.config.id, err: error },
          'the tenants could not be compared with what was asked for; it is tried again',
        )
      return []
    })
    for (const tenant of woken) wake(tenant)
    const removed = await sweeper.sweep(host, signal)
    deps.measure({ seconds: (clock.now().getTime() - begin) / 1000, orphans: sweeper.waiting, removed, corrected })
  }

  const sweep = (): Promise<void> => {
    if (sweeping !== undefined) {
      again = true
      return sweeping
    }
    sweeping = (async () => {
      do {
        again = false
        await sweepOnce().catch((error: unknown) => {
          complain(error, 'the region could not be looked at; it is tried again')
        })
      } while (requestedAgain() && !stopped())
      sweeping = undefined
    })()
    return sweeping
  }

  return {
    sweep,
    async listen() {
      while (!stopped()) {
        try {
          for await (const { stack } of engine.events(signal)) {
            if (stack === ownStack) void sweep()
            else wake(stack)
          }
        } catch (error) {
          if (!stopped())
            log.warn({ region: region.config.id, err: error }, "the engine's events ended; they are asked for again")
        }
        isReached = false
        // Whatever was missed meanwhile shows at the next look.
        await clock.sleep(reconnectMilliseconds, signal).catch(() => undefined)
        if (!stopped()) void sweep()
      }
    },
  }
}

/** A stack that can't be mended (a volume that is gone) differs too. */
function planOrFault(...[stack, host]: Parameters<typeof planSteps>): boolean {
  try {
    return planSteps(stack, host).length > 0
  } catch {
    return true
  }
}

/** Names of the volumes that held data and are not there any more. */
function lostVolumes(stack: Stack, host: ObservedHost): string[] {
  const isThere = (name: string) => host.volumes.some((volume) => volume.name === volumeName(stack.id, name))
  return stack.volumes.filter(({ name, mustExist }) => mustExist && !isThere(name)).map(({ name }) => name)
}

/** The stack but for some volumes and the services that use them: what does not can go on. */
function withoutVolumes(stack: Stack, lost: readonly string[]): Stack {
  const volumes = stack.volumes.filter(({ name }) => !lost.includes(name))
  const services = stack.services.filter((service) => !Object.keys(service.volumes).some((name) => lost.includes(name)))
  return { ...stack, volumes, services }
}
