// One run: the real reconciler in a simulated world, with faults that follow from one number.
import type { ChangeListener } from '../../control-plane/src/persistence/change-feed.ts'
import { createContainerEngine } from '../../control-plane/src/engines/container-engine.ts'
import { control } from '../../control-plane/src/reconcile/controller.ts'
import type { FailpointName } from '../../control-plane/src/reconcile/failpoints.ts'
import type { Snapshot } from '../../control-plane/src/reconcile/reconcile-store.ts'
import { createRegion, isDedicated, type Region } from '../../control-plane/src/reconcile/region.ts'
import { HomeDatabases } from '../../control-plane/src/homes/home-databases.ts'
import { readRegions } from '../../control-plane/src/regions/region-config.ts'
import { regionStackId } from '../../control-plane/src/stacks/region-stack.ts'
import type { Stack } from '../../control-plane/src/stacks/stack.ts'
import { createAccidents } from './accidents.ts'
import { chanceOf } from './chance.ts'
import { createControlDatabase } from './control-database.ts'
import { beginning, createControlPlane, noCallFaults, type CallFaults, type ControlPlane } from './control-plane.ts'
import { createDocker, hand } from './docker.ts'
import { clusterOf } from './docker-objects.ts'
import { homeBy, runInside } from './home-programs.ts'
import { createInvariants } from './invariants.ts'
import { createOperators } from './operators.ts'
import { flawsOf, type World } from './outcome.ts'
import { createRegionParts, createSimulatedProbe } from './region-parts.ts'
import { createScheduler } from './scheduler.ts'
import { createSimulatedHost } from './simulated-host.ts'
import { createSimulatedStore } from './simulated-store.ts'

/** Faults of the reconciler's surroundings that a simulation must see. */
export interface Defects {
  /** Volumes that held data are made anew. */
  forgetsData?: boolean
  /** Names alone say what is ours. */
  ignoresLabels?: boolean
  /** Writes of any epoch are taken. */
  ignoresEpoch?: boolean
  /** Databases are replaced like anything else. */
  startsDatabasesFirst?: boolean
  /** Runtimes are called healthy unseen. */
  believesRuntimes?: boolean
  /** Networks are left where they are. */
  leavesNetworks?: boolean
}

export interface Outcome {
  seed: number
  /** What went wrong, in words; undefined when nothing did. */
  failure: string | undefined
  /** Equal for runs in which the same happened. */
  hash: string
  /** The newest lines of the trace. */
  trace: string[]
  events: number
  /** Simulated. */
  seconds: number
  failpoints: ReadonlySet<FailpointName>
  /** How often what happened. */
  crashes: number
  leaders: number
  tenants: number
  failedTenants: number
}

const installation = 'simulated'
const regionId = 'local'
const regionStack = regionStackId(regionId, installation)
const range = '10.99.0.0/23'
const composeGateway = 'compose-gateway-1'
/** Simulated milliseconds. */
const troubles = 60_000
const longest = 900_000
const idle = 70_000

/** @param tell is given every line of the trace */
export async function simulate(seed: number, defects: Defects = {}, tell?: (line: string) => void): Promise<Outcome> {
  const chance = chanceOf(seed)
  const scheduler = createScheduler(tell)
  const now = () => new Date(beginning + scheduler.now())
  let failure: string | undefined
  const breach = (what: string) => {
    scheduler.trace(`BREACH ${what}`)
    failure ??= what
  }

  const database = createControlDatabase(now)
  const unknown = new Set<string>()
  const invariants = createInvariants({ installation, database, docker: () => docker, unknown, now, breach })
  const docker = createDocker({ scheduler, chance, onChange: (change, actor) => invariants.changed(change, actor) })
  const hasComposeGateway = chance.happens(0.5)
  const [config] = readRegions(
    JSON.stringify([
      {
        id: regionId, engine: 'docker', domain: 'localhost', gateway_url: 'http://127.0.0.1:4401',
        docker: {
          host: 'unix:///simulated', network_range: range, images: { postgres: 'postgres:1', runtime: 'runtime:1', gateway: 'gateway:1' }, control_url: 'http://control:4400',
          gateway: hasComposeGateway ? { container: composeGateway } : { host_address: '127.0.0.1', port: 4401, postgres_port: 4403 },
        },
      },
    ]),
    Buffer.alloc(32),
  )
  if (config === undefined) throw new Error('the region is not there')
  const [gatewayUrl = ''] = config.gateway_internal_urls

  // Each run has some of the faults, and some runs have none.
  let isTroubled = true
  const some = (probability: number) => probability * chance.pick([0, 0, 1, 1, 4])
  const profile: CallFaults = { lost: some(0.01), answerLost: some(0.01), hang: some(0.003), late: some(0.002), slow: some(0.01), crash: some(0.001) }
  const eventProfile = { missed: some(0.3), twice: some(0.2) }
  const watchProfile = some(0.1)
  const failpointCrash = some(0.004)
  const failpointThrow = some(0.01)

  const parts = createRegionParts({
    docker, database, scheduler, chance, regionStack, runtimeUrls: config.runtime_urls, gatewayContainer: hasComposeGateway ? composeGateway : undefined,
    watchFaults: () => (isTroubled ? watchProfile : 0),
  })
  const subnets = chance.happens(0.1) ? 2 : 16
  const world: World = { docker, database, parts, installation, regionStack, unknown, gatewayUrl, runtimeUrls: config.runtime_urls, subnets }
  const failpoints = new Set<FailpointName>()
  let homeVersion = 'v1'
  let crashes = 0
  let leader: ControlPlane | undefined

  const regionOf = (caller: ControlPlane): Region => {
    const host = createSimulatedHost({
      docker, caller, chance, scheduler, installation, eventFaults: () => (isTroubled ? eventProfile : { missed: 0, twice: 0 }), checksLabels: defects.ignoresLabels !== true,
    })
    const planted = defects.leavesNetworks === true ? { ...host, removeNetwork: async () => undefined } : host
    const engine = createContainerEngine({ name: 'docker', installation, host: planted, sleep: (milliseconds, signal) => caller.clock.sleep(milliseconds, signal) })
    // No pool of it is ever opened: homes are worked in below.
    const homes = new HomeDatabases(config.postgres_url, [])
    const region = createRegion({ config, engine, homes, migrations: [], internalToken: 'internal', clock: caller.clock })
    const inSharedPostgres = (command: readonly string[]) =>
      caller.call(
        `shared postgres: ${command.join(' ')}`,
        (actor) => {
          const postgres = [...docker.containers.values()].find((one) => one.labels?.stack === regionStack && one.labels.service === 'postgres' && docker.answers(one))
          if (postgres === undefined) throw new Error('connect ECONNREFUSED')
          return runInside(docker, postgres, docker.volumes.get(clusterOf(postgres) ?? ''), command, actor)
        },
        { patience: 10_000, takes: 20, failure: () => new Error('connect ETIMEDOUT') },
      )
    const inOwnPostgres = (tenantId: string) => async (command: readonly string[]) => {
      const { code } = await engine.exec(tenantId, 'postgres', command, { input: '', signal: caller.clock.timeout(40_000) })
      return code
    }
    const home = (tenant: Snapshot) => homeBy(isDedicated(tenant) ? inOwnPostgres(tenant.id) : inSharedPostgres)
    return { ...region, subnets, home, stack: async (tenant, signal) => spoilt(await region.stack(tenant, signal)) }
  }

  const spoilt = (stack: Stack): Stack => ({
    ...stack,
    volumes: defects.forgetsData === true ? stack.volumes.map((volume) => ({ ...volume, mustExist: false })) : stack.volumes,
    services: defects.startsDatabasesFirst === true ? stack.services.map((service) => ({ ...service, replace: 'start-first' })) : stack.services,
  })

  const changesOf = (caller: ControlPlane) => ({
    subscribe(listener: ChangeListener) {
      const soon = (milliseconds: number, work: () => void) => scheduler.after(milliseconds, () => caller.isAlive() && work())
      soon(chance.between(1, 50), () => listener('resync'))
      return database.listen((change) => {
        if (!caller.isAlive()) return
        const isGap = isTroubled && chance.happens(eventProfile.missed / 3)
        if (isGap) soon(chance.between(500, 3_000), () => listener('resync'))
        else soon(chance.between(0.5, 20), () => listener(change))
      })
    },
  })

  const failpointOf = (caller: ControlPlane) => (name: FailpointName) => {
    failpoints.add(name)
    if (!isTroubled) return
    if (chance.happens(failpointThrow)) throw new Error(`failpoint ${name}`)
    if (!chance.happens(failpointCrash)) return
    caller.die()
    return new Promise<void>(() => undefined)
  }

  const log = (caller: ControlPlane) => (details: object, message: string) => {
    const cause = 'err' in details && details.err instanceof Error ? `: ${details.err.message}${details.err.cause instanceof Error ? ` (${details.err.cause.message})` : ''}` : ''
    scheduler.trace(`${caller.name} says: ${message}${cause}`)
  }

  const lead = () => {
    const epoch = ++database.state.epoch
    const lost = new AbortController()
    const caller = createControlPlane({
      name: `cp${epoch}`, epoch, scheduler, chance,
      faults: () => (isTroubled ? profile : noCallFaults),
      leads: (of) => of === database.state.epoch,
      died: () => {
        crashes++
        if (caller === leader) scheduler.after(chance.between(250, 4_000), lead)
      },
    })
    const former = leader
    leader = caller
    scheduler.trace(`${caller.name} leads`)
    // The former leader goes on until it notices.
    if (former?.isAlive() === true) scheduler.after(chance.between(10, 20_000), () => losts.get(former)?.abort(new Error('the lead is lost')))
    losts.set(caller, lost)
    const probe = createSimulatedProbe(parts, caller, invariants, scheduler)
    const say = log(caller)
    void control(
      {
        store: createSimulatedStore({ database, caller, invariants, now, checksEpoch: defects.ignoresEpoch !== true }),
        regions: new Map([[regionId, regionOf(caller)]]),
        homeVersion,
        probe: defects.believesRuntimes === true ? { ...probe, tenantHealth: async (_url, id) => unseen(id) } : probe,
        changes: changesOf(caller),
        failpoint: failpointOf(caller),
        clock: caller.clock,
        random: () => chance.next(),
        log: { info: say, warn: say, error: say },
        measure: { reconciled: () => undefined, swept: () => undefined, queue: () => undefined },
        orphanGraceSeconds: 30,
        housekeeping: [],
      },
      { epoch, lost: lost.signal },
    ).then(
      () => scheduler.trace(`${caller.name} has ended`),
      (error: unknown) => breach(`${caller.name} ended with ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`),
    )
  }
  const losts = new Map<ControlPlane, AbortController>()
  const unseen = (id: string) => {
    const component = { status: 'healthy', observed_at: now().toISOString() } as const
    return { tenant_id: id, generation: 2 ** 30, status: 'healthy', components: { database: component, storage: component, functions: component } } as const
  }

  // ---- the run ----

  const ids = Array.from({ length: 5 }, () => `t_${chance.hex(20)}`)
  const operators = createOperators({ database, chance, now, region: regionId, ids: [...ids], trace: (line) => scheduler.trace(line) })
  const accidents = createAccidents({ docker, chance, scheduler, installation, range, ids })
  accidents.plantStrangers()
  if (hasComposeGateway) plantGateway(docker)
  if (chance.happens(0.2)) database.remember(accidents.plantLeftovers(15))
  if (chance.happens(0.2)) unknown.add(accidents.plantLeftovers(14))
  for (let count = 1 + chance.below(3); count > 0; count--) operators.create()
  lead()
  for (let count = 4 + chance.below(16); count > 0; count--) scheduler.after(chance.between(0, troubles), () => operators.act())
  for (let count = chance.below(12); count > 0; count--) scheduler.after(chance.between(0, troubles), () => accidents.happen())
  for (let count = chance.below(5); count > 0; count--) {
    scheduler.after(chance.between(0, troubles), () => {
      if (chance.happens(0.3)) homeVersion = 'v2'
      if (chance.happens(0.5)) return leader?.die()
      // Both leaders have something to do.
      if (chance.happens(0.5)) operators.act()
      scheduler.after(chance.between(0, 2_000), lead)
      if (chance.happens(0.5)) scheduler.after(chance.between(0, 4_000), () => operators.act())
    })
  }
  scheduler.after(troubles, () => {
    scheduler.trace('the troubles end')
    isTroubled = false
    docker.state.isFull = false
    docker.missingImages.clear()
  })

  let flaws: string[] = []
  let looked = troubles
  const isSettled = () => {
    if (scheduler.now() < looked) return false
    looked = scheduler.now() + 2_000
    flaws = flawsOf(world)
    return flaws.length === 0
  }
  await scheduler.run(() => failure !== undefined || isSettled() || scheduler.now() > longest)
  if (failure === undefined && flaws.length > 0) failure = `after ${longest / 1000} s: ${flaws.join('; ')}`

  const rows = [...database.tenants.values()]
  if (failure === undefined) {
    const calm = scheduler.now() + 80_000
    await scheduler.run(() => failure !== undefined || scheduler.now() > calm)
    const before = { writes: database.state.writes, changes: docker.state.changes }
    const end = scheduler.now() + idle
    await scheduler.run(() => failure !== undefined || scheduler.now() > end)
    const isQuiet = database.state.writes === before.writes && docker.state.changes === before.changes
    // Tenants that failed are tried again and again.
    if (!isQuiet && rows.every(({ status }) => status !== 'failed')) failure ??= `nothing was to be done, and yet: ${database.state.writes - before.writes} writes, ${docker.state.changes - before.changes} changes of the host`
    const late = flawsOf(world)
    if (late.length > 0) failure ??= `it did not stay so: ${late.join('; ')}`
  }
  return {
    seed, failure, hash: scheduler.hash(), trace: scheduler.lines(), events: scheduler.count(), seconds: scheduler.now() / 1000, failpoints,
    crashes, leaders: Number(database.state.epoch), tenants: rows.length, failedTenants: rows.filter(({ status }) => status === 'failed').length,
  }
}

function plantGateway(docker: ReturnType<typeof createDocker>): void {
  docker.createContainer(
    {
      name: composeGateway, labels: undefined, image: 'gateway:1', command: [], environment: {}, user: '', volumes: [], scratch: {}, networks: [], published: [],
      health: { command: [], intervalSeconds: 1, timeoutSeconds: 1, retries: 1, startSeconds: 1 }, resources: { memoryBytes: 1, cpuMillis: 1, pids: 1 }, stopSeconds: 1,
    },
    hand,
  )
  docker.startContainer(composeGateway, hand)
}
