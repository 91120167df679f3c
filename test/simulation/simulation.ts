// One run: the real reconciler in a simulated world, with faults that follow from one number.
import type { FailpointName } from '#control-plane/reconcile/failpoints.ts'
import { readRegions, type RegionConfig } from '#control-plane/regions/region-config.ts'
import { regionStackId } from '#control-plane/stacks/region-stack.ts'
import { createAccidents, plain } from './accidents.ts'
import { chanceOf } from './chance.ts'
import { createControlDatabase } from './control-database.ts'
import { beginning } from './control-plane.ts'
import type { Defects } from './defects.ts'
import { createDocker, operator, type Docker } from './docker.ts'
import { createInvariants } from './invariants.ts'
import { createLeaders } from './leaders.ts'
import { createOperators } from './operators.ts'
import { flawsOf, type World } from './outcome.ts'
import { createRegionParts } from './region-parts.ts'
import { createScheduler } from './scheduler.ts'
import { createTroubles } from './troubles.ts'

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
  crashes: number
  leaders: number
  /** In the end. */
  tenants: number
  failedTenants: number
}

const installation = 'simulated'
const regionId = 'local'
const regionStack = regionStackId(regionId, installation)
const range = '10.99.0.0/23'
const composeGateway = 'compose-gateway-1'

/** Simulated milliseconds: how long things go wrong, how long it may take until all is well again, … */
const troubled = 60_000
const max = 900_000
/** … until the last call that hung is given up and its tenant tried again, and how long nothing must happen after that. */
const aftermath = 80_000
const idle = 70_000
const betweenPolls = 2_000

/** @param report is given every line of the trace */
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
  const invariants = createInvariants({ installation, database, docker: () => docker, unknown, now, breach })
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
  const leaders = createLeaders({
    config,
    installation,
    subnets,
    docker,
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
    trace: (line) => scheduler.trace(line),
  })
  const accidents = createAccidents({ docker, chance, scheduler, installation, range, ids })
  accidents.plantForeign()
  if (hasComposeGateway) plantGateway(docker)
  if (chance.happens(0.2)) database.remember(accidents.plantRemains(15))
  if (chance.happens(0.2)) unknown.add(accidents.plantRemains(14))
  for (let count = 1 + chance.below(3); count > 0; count--) operators.create()
  leaders.lead()

  const atTimes = (count: number, work: () => void) => {
    for (let left = count; left > 0; left--) scheduler.after(chance.between(0, troubled), work)
  }
  atTimes(4 + chance.below(16), () => operators.act())
  atTimes(chance.below(12), () => accidents.happen())
  atTimes(chance.below(5), () => {
    if (chance.happens(0.3)) leaders.upgrade()
    if (chance.happens(0.5)) {
      leaders.crash()
      return
    }
    // Both leaders have something to do.
    if (chance.happens(0.5)) operators.act()
    scheduler.after(chance.between(0, 2_000), () => leaders.lead())
    if (chance.happens(0.5)) scheduler.after(chance.between(0, 4_000), () => operators.act())
  })
  scheduler.after(troubled, () => {
    scheduler.trace('the troubles end')
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
    let nextPoll = troubled
    await runUntil(() => {
      if (scheduler.now() < nextPoll) return false
      nextPoll = scheduler.now() + betweenPolls
      flaws = flawsOf(world)
      return flaws.length === 0 || scheduler.now() > max
    })
    if (flaws.length > 0) failure ??= `after ${max / 1000} s: ${flaws.join('; ')}`
  }
  const idleAway = async () => {
    await runFor(aftermath)
    const before = [database.state.writes, docker.state.changes] as const
    await runFor(idle)
    const [writes, changes] = [database.state.writes - before[0], docker.state.changes - before[1]]
    // Tenants that failed are tried again and again.
    const hasFailed = [...database.tenants.values()].some(
      ({ status, desired }) => status === 'failed' || desired === 'deleted',
    )
    if ((writes !== 0 || changes !== 0) && !hasFailed)
      failure ??= `nothing was to be done, and yet: ${writes} writes, ${changes} changes of the host`
    const flaws = flawsOf(world)
    if (flaws.length > 0) failure ??= `it did not stay so: ${flaws.join('; ')}`
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

/** The region's gateway is somebody else's container, or one that the control plane makes. */
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
  docker.createContainer({ ...plain, name: composeGateway, labels: undefined, volumes: [], networks: [] }, operator)
  docker.startContainer(composeGateway, operator)
}
