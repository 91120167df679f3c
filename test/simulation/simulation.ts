// One run of the real reconciler in a simulated world. A seed determines all faults.
import type { FailpointName } from '#control-plane/reconcile/failpoints.ts'
import { readRegions, type RegionConfig } from '#control-plane/regions/region-config.ts'
import { regionStackId } from '#control-plane/stacks/region-stack.ts'
import { createAccidents, plain } from './accidents.ts'
import { chanceOf } from './chance.ts'
import { createControlDatabase } from './control-database.ts'
import { beginning } from './control-plane.ts'
import type { Defects } from './defects.ts'
import { createDocker, dockerCli, type Docker } from './docker.ts'
import { createInvariants } from './invariants.ts'
import { createLeaders } from './leaders.ts'
import { createOperators } from './operators.ts'
import { flawsOf, type World } from './outcome.ts'
import { createRegionParts } from './region-parts.ts'
import { createScheduler } from './scheduler.ts'
import { createSimulatedRegion } from './simulated-region.ts'
import { createTroubles } from './troubles.ts'

export interface Outcome {
  seed: number
  /** Description of the first failure; undefined when the run passed. */
  failure: string | undefined
  /** Hash of the trace, equal for identical runs. */
  hash: string
  /** The newest lines of the trace. */
  trace: string[]
  events: number
  /** Simulated seconds. */
  seconds: number
  failpoints: ReadonlySet<FailpointName>
  crashes: number
  leaders: number
  /** Number of tenants at the end. */
  tenants: number
  failedTenants: number
}

const installation = 'simulated'
const regionId = 'local'
const regionStack = regionStackId(regionId, installation)
const range = '10.99.0.0/23'
const composeGateway = 'compose-gateway-1'

/** Simulated milliseconds during which faults happen. */
const faultPeriodMs = 60_000
/** Simulated time in milliseconds by which all tenants must be in their desired state. */
const maxSettledAtMs = 900_000
/** Simulated milliseconds until the last call that hangs has timed out and its tenant was tried again. */
const aftermathMs = 80_000
/** Simulated milliseconds after that without any change. */
const idlePeriodMs = 70_000
const pollIntervalMs = 2_000

/** Runs a simulation. @param report receives every line of the trace */
export async function simulate(seed: number, defects: Defects = {}, report?: (line: string) => void): Promise<Outcome> {
  const chance = chanceOf(seed)
  const scheduler = createScheduler(report)
  const now = () => new Date(beginning + scheduler.now())
  let failure: string | undefined
  const breach = (what: string) => {
    scheduler.trace(`BREACH ${what}`)
    failure ??= what
  }

  const database = createControlDatabase(now)
  const unknown = new Set<string>()
  const invariants = createInvariants({ installation, database, dockers: () => [docker], unknown, now, breach })
  const docker = createDocker({
    scheduler,
    chance,
    beginsAnywhere: defects.beginsAnywhere === true,
    onChange: (change, actor) => invariants.changed(change, actor),
  })
  const hasComposeGateway = chance.happens(0.5)
  const config = configure(hasComposeGateway)
  const [gatewayUrl = ''] = config.gateway_internal_urls
  const runtimeUrls = config.runtime_urls
  const troubles = createTroubles(chance)
  const parts = createRegionParts({
    docker,
    database,
    scheduler,
    chance,
    regionStack,
    runtimeUrls,
    gatewayContainer: hasComposeGateway ? composeGateway : undefined,
    watchFaults: () => troubles.watches(),
  })
  const subnets = chance.happens(0.1) ? 2 : 16
  const world: World = { docker, database, parts, installation, regionStack, unknown, gatewayUrl, runtimeUrls, subnets }
  const regionOptions = { config, installation, subnets, docker, chance, scheduler, troubles, defects }
  const leaders = createLeaders({
    region: (caller) => createSimulatedRegion(regionOptions, caller),
    chance,
    scheduler,
    troubles,
    defects,
    database,
    parts,
    invariants,
    now,
    breach,
  })

  const ids = Array.from({ length: 5 }, () => `t_${chance.hex(20)}`)
  const operators = createOperators({
    database,
    chance,
    now,
    region: regionId,
    ids: [...ids],
    isolations: ['database-per-tenant', 'database-per-tenant', 'database-per-tenant', 'schema-per-tenant'],
    trace: (line) => scheduler.trace(line),
  })
  const accidents = createAccidents({ docker, chance, scheduler, installation, range, ids })
  accidents.plantForeign()
  if (hasComposeGateway) plantGateway(docker)
  if (chance.happens(0.2)) database.recordDeleted(accidents.plantRemains(15))
  if (chance.happens(0.2)) unknown.add(accidents.plantRemains(14))
  for (let count = 1 + chance.below(3); count > 0; count--) operators.create()
  leaders.lead()

  const atTimes = (count: number, work: () => void) => {
    for (let remaining = count; remaining > 0; remaining--) scheduler.after(chance.between(0, faultPeriodMs), work)
  }
  atTimes(4 + chance.below(16), () => operators.act())
  atTimes(chance.below(12), () => accidents.happen())
  atTimes(chance.below(5), () => {
    if (chance.happens(0.3)) leaders.upgrade()
    if (chance.happens(0.5)) {
      leaders.crash()
      return
    }
    // Gives both leaders work to do.
    if (chance.happens(0.5)) operators.act()
    scheduler.after(chance.between(0, 2_000), () => leaders.lead())
    if (chance.happens(0.5)) scheduler.after(chance.between(0, 4_000), () => operators.act())
  })
  scheduler.after(faultPeriodMs, () => {
    scheduler.trace('the faults end')
    troubles.end()
    accidents.end()
  })

  const runUntil = (isOver: () => boolean) => scheduler.run(() => failure !== undefined || isOver())
  const runFor = (milliseconds: number) => {
    const end = scheduler.now() + milliseconds
    return runUntil(() => scheduler.now() > end)
  }
  const settle = async () => {
    let flaws: string[] = []
    let nextPoll = faultPeriodMs
    await runUntil(() => {
      if (scheduler.now() < nextPoll) return false
      nextPoll = scheduler.now() + pollIntervalMs
      flaws = flawsOf(world)
      return flaws.length === 0 || scheduler.now() > maxSettledAtMs
    })
    if (flaws.length > 0) failure ??= `after ${maxSettledAtMs / 1000} s: ${flaws.join('; ')}`
  }
  const idleAway = async () => {
    await runFor(aftermathMs)
    const before = [database.state.writes, docker.state.changes] as const
    await runFor(idlePeriodMs)
    const [writes, changes] = [database.state.writes - before[0], docker.state.changes - before[1]]
    // Failed tenants are tried again at any time.
    const hasFailed = [...database.tenants.values()].some(
      ({ status, desired }) => status === 'failed' || desired === 'deleted',
    )
    if ((writes !== 0 || changes !== 0) && !hasFailed)
      failure ??= `the idle controller made ${writes} writes and ${changes} changes of the host`
    const flaws = flawsOf(world)
    if (flaws.length > 0) failure ??= `the settled state changed: ${flaws.join('; ')}`
  }
  await settle()
  if (failure === undefined) await idleAway()

  const rows = [...database.tenants.values()]
  const outcome = {
    seed,
    failure,
    hash: scheduler.hash(),
    trace: scheduler.lines(),
    events: scheduler.count(),
    seconds: scheduler.now() / 1000,
    failpoints: leaders.failpoints,
    crashes: leaders.crashes(),
    leaders: Number(database.state.epoch),
    tenants: rows.length,
    failedTenants: rows.filter(({ status }) => status === 'failed').length,
  }
  leaders.end()
  return outcome
}

/** Returns the region's configuration, with a foreign gateway container or one that the control plane creates. */
function configure(hasComposeGateway: boolean): RegionConfig {
  const docker = {
    host: 'unix:///simulated',
    network_range: range,
    images: { postgres: 'postgres:1', runtime: 'runtime:1', gateway: 'gateway:1' },
    control_url: 'http://control:4400',
    gateway: hasComposeGateway
      ? { container: composeGateway }
      : { host_address: '127.0.0.1', port: 4401, postgres_port: 4403 },
  }
  const [config] = readRegions(
    JSON.stringify([
      { id: regionId, engine: 'docker', domain: 'localhost', gateway_url: 'http://127.0.0.1:4401', docker },
    ]),
    Buffer.alloc(32),
  )
  if (config === undefined) throw new Error('the region is not there')
  return config
}

function plantGateway(docker: Docker): void {
  docker.createContainer({ ...plain, name: composeGateway, labels: undefined, volumes: [], networks: [] }, dockerCli)
  docker.startContainer(composeGateway, dockerCli)
}
