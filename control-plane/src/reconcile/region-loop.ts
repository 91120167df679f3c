// The work for a region in addition to its tenants: its own stack, its engine's events, and sweeps of everything.
import type { Clock } from '../platform/clock.ts'
import type { Log } from '../platform/log.ts'
import { hasFormer, planSteps, reachablePart, type ObservedHost, type Engine, EngineError } from '../engines/index.ts'
import type { HostState } from '../placement/index.ts'
import { volumeName, type Stack } from '../stacks/index.ts'
import { createRegionConvergence } from './converge-region.ts'
import { networkEncryption } from './network-encryption.ts'
import type { Failpoint } from './failpoints.ts'
import { isClusterComplete } from './observe-cluster.ts'
import { OrphanSweeper, partOf } from './orphan-sweeper.ts'
import type { ReconcileStore, Snapshot } from './reconcile-store.ts'
import { LeadershipLost } from '../platform/leadership-lost.ts'
import { unlessAborted } from '../platform/unless-aborted.ts'
import { isDedicated, type Region } from './region.ts'
import type { RegionConditions } from './region-conditions.ts'
import { shouldMove } from './should-move.ts'
import { type AtStep, reportSlowSteps } from './slow-steps.ts'
import { isSpreadOutdated } from './spread.ts'

interface RegionLoopDeps {
  region: Region
  engine: Engine
  store: ReconcileStore
  failpoint: Failpoint
  clock: Clock
  epoch: bigint
  orphanGraceSeconds: number
  /** IDs of all regions' own stacks: several regions may share one engine. */
  regionStacks: readonly string[]
  /** Puts a tenant into the queue. */
  wake: (tenantId: string) => void
  /** Reports that the engine is reachable again. */
  recovered: () => void
  conditions: Pick<RegionConditions, 'ready' | 'failed' | 'encrypted'>
  /** Records every sweep of the whole region. */
  measure: (sweep: { seconds: number; orphans: number; removed: number; corrected: boolean }) => void
  log: Pick<Log, 'info' | 'warn'>
}

const observeMilliseconds = 30_000
/** Time for changes of the region's own services in a sweep, and for the whole sweep. */
const ownMilliseconds = 270_000
const sweepMilliseconds = 600_000
/** Delay between two attempts to receive the engine's events. */
const reconnectMilliseconds = 1_000

export function createRegionLoop(deps: RegionLoopDeps, signal: AbortSignal) {
  const { region, engine, store, failpoint, clock, epoch, wake, log } = deps
  const stopped = () => signal.aborted
  const ownStack = region.stackId
  const convergence = createRegionConvergence({
    region,
    engine,
    clock,
    async edge(side) {
      if (side === 'before') await store.confirmLead(epoch)
      await failpoint(side === 'before' ? 'region.step-before' : 'region.step-after')
    },
    failpoint,
    log,
  })
  const sweeper = new OrphanSweeper({
    engine,
    clock,
    graceSeconds: deps.orphanGraceSeconds,
    known: async () => new Set([...deps.regionStacks, ...(await store.tenantIds())]),
    deleted: (stacks) => store.deletedTenants(stacks),
    async removed(stack) {
      await failpoint('sweep.removed')
      await store.freeSubnet(stack, epoch)
    },
    onRemoved: (stack) =>
      log.info({ region: region.config.id, stack }, 'The remaining objects of a deleted tenant were removed.'),
    onError: (error) => log.warn({ region: region.config.id, err: error }, error.message),
  })

  /** Reports a failure of the whole region as the region's condition, not as one of its tenants. */
  const reportFailure = (error: unknown, message: string) => {
    if (stopped() || error instanceof LeadershipLost) return
    deps.conditions.failed(region.config.id, error, message)
    log.warn({ region: region.config.id, err: error }, message)
  }

  /** Converges the region's own stack. @returns whether a change was necessary */
  const convergeOwn = async (host: ObservedHost, until: AbortSignal, atStep: AtStep): Promise<boolean> => {
    // The sweep continues without this work once its time is over.
    const at: AtStep = (step) => {
      if (!until.aborted) atStep(step)
    }
    at('read the specification of its own services')
    const [homes, clusters] = await Promise.all([store.hasHomes(region.config.id), store.hasClusters(region.config.id)])
    const stack = await region.ownStack(
      { homes, clusters },
      AbortSignal.any([until, clock.timeout(observeMilliseconds)]),
    )
    if (stack === undefined) {
      // The region's own services are started by other means, and its engine responds.
      deps.conditions.ready(region.config.id)
      return false
    }
    at('replace members of etcd')
    const { stack: prepared, own, held } = await convergence.replaceMembers(stack, partOf(host, ownStack), until)
    const lost = lostVolumes(reachablePart(stack, own), own)
    if (lost.length > 0)
      reportFailure(
        new EngineError('VOLUME_MISSING', `Volumes of the region that held data are gone: ${lost.join(', ')}.`),
        'Services whose volumes are gone are not started.',
      )
    const present = withoutVolumes(prepared, [...lost, ...held])
    const differs = planSteps(present, own).length > 0
    if (differs) {
      at('converge its own services')
      await convergence.converge(present, own, homes, until, stack)
    } else {
      at('check its own services')
      const states = region.spansHosts ? await store.placements.states(region.config.id) : new Map<string, HostState>()
      const mayHoldHomes = await store.mayHoldHomes(region.config.id)
      await convergence.check(present, new Set(states.keys()), mayHoldHomes, until)
    }
    if (lost.length > 0) return differs
    if (held.length > 0)
      throw new EngineError('UNHEALTHY', `Members of etcd have no volume, and wait for the others: ${held.join(', ')}.`)
    if (!until.aborted) deps.conditions.ready(region.config.id)
    return differs
  }

  const tenantsWithDrift = async (host: ObservedHost, until: AbortSignal): Promise<string[]> => {
    const tenants = await store.settledDedicated(region.config.id)
    const states = region.spansHosts ? await store.placements.states(region.config.id) : undefined
    const differs = async (tenant: Snapshot) => {
      if (!isDedicated(tenant)) return false
      const [stack, own] = [await region.stack(tenant, until), partOf(host, tenant.id)]
      if (differsFrom(stack, own) || hasFormer(stack, own) || tenant.conditions.some(({ type }) => type === 'Drift'))
        return true
      if (isSpreadOutdated(tenant, region)) return true
      if (states !== undefined && shouldMove(tenant, states, engine)) return true
      return !(await isClusterComplete(tenant, region, clock, until))
    }
    const ids = await Promise.all(tenants.map(async (tenant) => ((await differs(tenant)) ? [tenant.id] : [])))
    return ids.flat()
  }

  let sweeping: Promise<void> | undefined
  /** Set by a request for a sweep while one is in progress. */
  let isSweepPending = false
  const readSweepPending = () => isSweepPending
  let isReachable = true
  const poll = async (until: AbortSignal): Promise<ObservedHost> => {
    const wasReachable = isReachable
    isReachable = false
    const host = await engine.observe(undefined, AbortSignal.any([until, clock.timeout(observeMilliseconds)]))
    isReachable = true
    if (!wasReachable) deps.recovered()
    return host
  }
  const sweepOnce = async (until: AbortSignal, at: AtStep): Promise<void> => {
    const begin = clock.now().getTime()
    at('observe the hosts')
    const host = await poll(until)
    const encryption = networkEncryption(region.config.docker, ownStack, host)
    if (encryption !== undefined && !until.aborted) deps.conditions.encrypted(region.config.id, encryption)
    // A failure of the region's shared services does not stop the work for tenants with services of their own.
    const own = AbortSignal.any([until, clock.timeout(ownMilliseconds)])
    const corrected = await unlessAborted(convergeOwn(host, own, at), own).catch((error: unknown) => {
      if (until.aborted) return false
      reportFailure(
        error,
        "The region's own services could not be brought to their specified state. The work is retried.",
      )
      return false
    })
    at('compare the tenants with their specification')
    // A new gateway changes the networks of all tenants.
    const seen = corrected ? await poll(until) : host
    const woken = await tenantsWithDrift(seen, until).catch((error: unknown) => {
      if (!until.aborted)
        log.warn(
          { region: region.config.id, err: error },
          'The tenants could not be compared with their specification. The comparison is retried.',
        )
      return []
    })
    for (const tenant of woken) wake(tenant)
    until.throwIfAborted()
    at('remove what no tenant owns')
    const removed = await sweeper.sweep(host, until)
    until.throwIfAborted()
    deps.measure({ seconds: (clock.now().getTime() - begin) / 1000, orphans: sweeper.orphans, removed, corrected })
  }

  const reportSlow = (step: string, seconds: number) =>
    log.warn({ region: region.config.id, step, seconds }, 'A step of the sweep of a region takes long.')

  const sweep = (): Promise<void> => {
    if (sweeping !== undefined) {
      isSweepPending = true
      return sweeping
    }
    sweeping = (async () => {
      do {
        isSweepPending = false
        const until = AbortSignal.any([signal, clock.timeout(sweepMilliseconds)])
        // A call that does not end must not end all sweeps.
        const work = (at: AtStep) => unlessAborted(sweepOnce(until, at), until)
        await reportSlowSteps({ clock, report: reportSlow }, work).catch((error: unknown) => {
          reportFailure(error, 'The region could not be observed. The sweep is retried.')
        })
      } while (readSweepPending() && !stopped())
      sweeping = undefined
    })()
    return sweeping
  }

  return {
    /**
     * Observes everything, repairs the region's own stack, wakes tenants that differ, and removes orphans. Never throws.
     */
    sweep,
    /** Receives the engine's events until aborted. */
    async listen(): Promise<void> {
      while (!stopped()) {
        try {
          for await (const { stack } of engine.events(signal)) {
            if (stack === ownStack) void sweep()
            else wake(stack)
          }
        } catch (error) {
          if (!stopped())
            log.warn(
              { region: region.config.id, err: error },
              "The stream of the engine's events ended. It is opened again.",
            )
        }
        isReachable = false
        // The next sweep finds everything that changed meanwhile.
        await clock.sleep(reconnectMilliseconds, signal).catch(() => undefined)
        if (!stopped()) void sweep()
      }
    },
  }
}

/** Whether a stack differs. One that cannot be repaired, for example because a volume is gone, differs too. */
function differsFrom(...[stack, host]: Parameters<typeof planSteps>): boolean {
  try {
    return planSteps(stack, host).length > 0
  } catch {
    return true
  }
}

/** Returns the names of the volumes that held data and no longer exist. */
function lostVolumes(stack: Stack, host: ObservedHost): string[] {
  const exists = (name: string) => host.volumes.some((volume) => volume.name === volumeName(stack.id, name))
  return stack.volumes.filter(({ name, mustExist }) => mustExist && !exists(name)).map(({ name }) => name)
}

/** Returns the stack without some volumes and the services that use them, so that the other services keep running. */
function withoutVolumes(stack: Stack, lost: readonly string[]): Stack {
  const volumes = stack.volumes.filter(({ name }) => !lost.includes(name))
  const services = stack.services.filter((service) => !Object.keys(service.volumes).some((name) => lost.includes(name)))
  return { ...stack, volumes, services }
}
