// One run of the real reconciler in a simulated region on several hosts. A seed determines all faults.
import { regionStackId } from '#control-plane/stacks/region-stack.ts'
import { plain } from '../accidents.ts'
import { chanceOf } from '../chance.ts'
import { createControlDatabase } from '../control-database.ts'
import { beginning, type Actor } from '../control-plane.ts'
import { dockerCli } from '../docker.ts'
import type { Change } from '../docker-objects.ts'
import { createInvariants } from '../invariants.ts'
import { createLeaders } from '../leaders.ts'
import { createOperators } from '../operators.ts'
import { createScheduler } from '../scheduler.ts'
import type { Outcome } from '../simulation.ts'
import { createTroubles } from '../troubles.ts'
import { createHostAccidents, maxAbsenceMs } from './accidents.ts'
import { createClusterInvariants } from './cluster-invariants.ts'
import type { HostDefects } from './defects.ts'
import { createEmptyMachines } from './empty-machine.ts'
import { createEtcd } from './etcd.ts'
import { createHostOperators } from './host-operators.ts'
import { createMachines } from './hosts.ts'
import { flawsOfHosts, type HostsWorld } from './outcome.ts'
import { createHostsParts } from './parts.ts'
import { createPatroni } from './patroni.ts'
import { createClusterPrograms } from './programs.ts'
import { configure, controlContainer, createHostsRegion } from './region.ts'

const installation = 'simulated'
const regionId = 'north'
const regionStack = regionStackId(regionId, installation)

/** Simulated milliseconds during which faults happen. */
const faultPeriodMs = 240_000
/** Simulated time in milliseconds by which all tenants must be in their desired state. */
const maxSettledAtMs = 1_800_000
/** Simulated milliseconds without an accident after which what was observed is what is. */
const calmMs = 120_000
const pollIntervalMs = 2_000

/** Runs a simulation of a region on three or four hosts. @param report receives every line of the trace */
export async function simulateSeveralHosts(
  seed: number,
  defects: HostDefects = {},
  report?: (line: string) => void,
): Promise<Outcome> {
  const chance = chanceOf(seed)
  const scheduler = createScheduler(report)
  const now = () => new Date(beginning + scheduler.now())
  let failure: string | undefined
  const breach = (what: string) => {
    scheduler.trace(`BREACH ${what}`)
    failure ??= what
  }
  const hosts = chance.happens(0.5) ? ['h1', 'h2', 'h3'] : ['h1', 'h2', 'h3', 'h4']
  const { config, stacks } = configure(regionId, hosts)
  let lastAccident = -Infinity
  const database = createControlDatabase(now)
  const invariants = createInvariants({
    installation,
    database,
    dockers: () => machines.all.map(({ docker }) => docker),
    unknown: new Set(),
    now,
    breach,
  })
  const clusterInvariants = createClusterInvariants({
    database,
    machines: () => machines,
    patroni: () => patroni,
    regionStack,
    isCalm: () => scheduler.now() - lastAccident > calmMs,
    now,
    breach,
  })
  const onChange = (change: Change, actor: Actor) => {
    if (change.kind === 'container' && change.what === 'changed' && change.object.exitCode === 0)
      patroni.stopped(change.object)
    invariants.changed(change, actor)
    clusterInvariants.changed(change, actor)
  }
  const machines = createMachines({ ids: hosts, chance, scheduler, onChange })
  const etcd = createEtcd({ machines, regionStack })
  const patroni = createPatroni({
    machines,
    etcd,
    chance,
    scheduler,
    onBegin: (stack) => clusterInvariants.began(stack),
    onElected: (stack, volume) => clusterInvariants.elected(stack, volume),
  })
  const programs = createClusterPrograms({
    machines,
    etcd,
    patroni,
    onConfirmed: (stack, work, tenantId) => clusterInvariants.confirmed(stack, work, tenantId),
  })
  const troubles = createTroubles(chance)
  const parts = createHostsParts({
    machines,
    patroni,
    programs,
    database,
    scheduler,
    chance,
    config,
    regionStack,
    watchFaults: () => troubles.watches(),
  })
  const world: HostsWorld = { machines, etcd, patroni, database, parts, config, installation, regionStack }
  const regionOptions = {
    config,
    stacks,
    installation,
    regionStack,
    machines,
    patroni,
    programs,
    chance,
    scheduler,
    troubles,
    defects,
  }
  const leaders = createLeaders({
    region: (caller) => createHostsRegion(regionOptions, caller),
    database,
    parts,
    chance,
    scheduler,
    troubles,
    defects: {},
    invariants,
    now,
    breach,
  })
  const trace = (line: string) => scheduler.trace(line)
  const operators = createOperators({
    database,
    chance,
    now,
    region: regionId,
    ids: Array.from({ length: 4 }, () => `t_${chance.hex(20)}`),
    isolations: ['cluster-per-tenant', 'cluster-per-tenant', 'database-per-tenant', 'schema-per-tenant'],
    trace,
  })
  const hostOperators = createHostOperators({ database, chance, hosts, trace })
  const happen = createHostAccidents({ machines, chance, scheduler, installation })

  const [firstHost] = machines.all
  firstHost?.docker.createContainer(
    { ...plain, name: controlContainer, labels: undefined, volumes: [], networks: [] },
    dockerCli,
  )
  firstHost?.docker.startContainer(controlContainer, dockerCli)
  for (let count = 1 + chance.below(2); count > 0; count--) operators.create()
  leaders.lead()

  const atTimes = (count: number, work: () => void) => {
    for (let remaining = count; remaining > 0; remaining--) scheduler.after(chance.between(0, faultPeriodMs), work)
  }
  atTimes(5 + chance.below(10), () => operators.act())
  atTimes(chance.below(5), () => hostOperators.act())
  // Some runs have no accidents, so that the work of operators alone must not interrupt a cluster.
  atTimes(chance.happens(0.4) ? 0 : chance.below(8), () => {
    lastAccident = scheduler.now() + maxAbsenceMs
    happen()
  })
  // At most one machine is replaced, because others must have its data.
  let isReplaced = !chance.happens(0.5)
  const replaceMachine = createEmptyMachines({ machines, etcd, patroni, database, chance, scheduler, installation })
  atTimes(10, () => {
    if (isReplaced || scheduler.now() - lastAccident <= 0) return
    isReplaced = replaceMachine()
    if (isReplaced) lastAccident = scheduler.now() + maxAbsenceMs
  })
  atTimes(chance.below(4), () => (chance.happens(0.5) ? leaders.crash() : leaders.lead()))
  scheduler.after(faultPeriodMs, () => {
    scheduler.trace('the faults end')
    troubles.end()
  })

  let flaws: string[] = []
  let nextPoll = faultPeriodMs + maxAbsenceMs
  await scheduler.run(() => {
    if (failure !== undefined) return true
    if (scheduler.now() < nextPoll) return false
    nextPoll = scheduler.now() + pollIntervalMs
    flaws = flawsOfHosts(world)
    return flaws.length === 0 || scheduler.now() > maxSettledAtMs
  })
  if (flaws.length > 0) failure ??= `after ${maxSettledAtMs / 1000} s: ${flaws.join('; ')}`

  const rows = [...database.tenants.values()]
  const outcome: Outcome = {
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
