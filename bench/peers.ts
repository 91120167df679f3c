// Tenantry compared with other services that do the same work, as a client sees it: rows compared with Platformatic DB, and
// a function compared with workerd and Deno, in alternating rounds. Tenantry is the whole installation of `npm start`.
import { mkdtemp, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { median, noise, type Figure, type Figures, type Report } from '#bench/figures.ts'
import { cpuOf } from '#bench/support/processes.ts'
import { inTurn, reportRounds } from '#bench/support/in-turn.ts'
import { load } from '#bench/support/load.ts'
import { installPeers, peerNames } from '#bench/support/peers/packages.ts'
import { checkFunctions, checkRest, functionWay, restWay, type Way } from '#bench/support/peers/requests.ts'
import { operationNames } from '#bench/support/peers/rest-operations.ts'
import { openScene, type PeersScene } from '#bench/support/peers/scene.ts'

const connections = 16
const rounds = 9
const roundMilliseconds = 1_500
const warmUpMilliseconds = 2_000

const targets = { get: 1.5, list: 1.8, update: 1.5, insert: 1.2, function_workerd: 1, function_deno: 0.7 }

export async function figures(report: Report): Promise<Figures> {
  const project = join(import.meta.dirname, '..')
  const programs = await installPeers(join(project, '.tenantry', 'bench-peers'), report)
  const scratch = await mkdtemp(join(project, '.tenantry-bench-'))
  try {
    const scene = await openScene(scratch, programs, connections)
    try {
      return { ...(await measureRest(scene, report)), ...(await measureFunctions(scene, report)) }
    } finally {
      await scene.stop()
    }
  } finally {
    await rm(scratch, { recursive: true, force: true })
  }
}

/** The measurements of one round. */
interface Round {
  rps: number
  /** Milliseconds. */
  p99: number
  /** Microseconds of CPU time for each request, by the part of the service. */
  cpu: Record<string, number>
}

async function measureRest(scene: PeersScene, report: Report): Promise<Figures> {
  const all: Figures = {}
  for (const name of operationNames) {
    const ways = { tenantry: restWay(scene, 'tenantry', name), peer: restWay(scene, 'platformaticDb', name) }
    const check = () => checkRest(scene, name)
    const { tenantry, peer } = await measure(name, ways, check, report)
    Object.assign(all, compared(name, tenantry, peer, peerNames.platformaticDb))
  }
  return all
}

async function measureFunctions(scene: PeersScene, report: Report): Promise<Figures> {
  const ways = {
    tenantry: functionWay(scene, 'tenantry'),
    workerd: functionWay(scene, 'workerd'),
    deno: functionWay(scene, 'deno'),
  }
  const rounds = await measure('function', ways, () => checkFunctions(scene), report)
  return {
    ...compared('function_workerd', rounds.tenantry, rounds.workerd, peerNames.workerd),
    ...compared('function_deno', rounds.tenantry, rounds.deno, peerNames.deno),
  }
}

/** Measures the ways in turn, and checks the content of responses before and after that. */
async function measure<Name extends string>(
  what: string,
  ways: Record<Name, Way>,
  check: () => Promise<void>,
  report: Report,
): Promise<Record<Name, Round[]>> {
  await check()
  // The first requests compile code; that time is not part of the measurement.
  for (const way of Object.values<Way>(ways)) await measureRound(way, warmUpMilliseconds)
  const measured = await inTurn<Way, Round>(ways, rounds, (way) => measureRound(way, roundMilliseconds))
  await check()
  const of = (read: (round: Round) => number) =>
    Object.fromEntries(Object.entries(measured).map(([way, each]) => [way, each.map(read)]))
  reportRounds(
    report,
    `${what}, ${connections} connections, /s`,
    of(({ rps }) => rps),
  )
  reportRounds(
    report,
    `${what}, p99 in ms`,
    of(({ p99 }) => p99),
    2,
  )
  reportRounds(report, `${what}, CPU in µs for each request`, of(total))
  return measured
}

/** @throws Error on the first response with another status */
async function measureRound({ service, request, status }: Way, milliseconds: number): Promise<Round> {
  const { port, processes } = service
  const before = await cpuOf(processes)
  const { rps, p99, requests } = await load({ port, request, status, connections, milliseconds })
  const after = await cpuOf(processes)
  const cpu = Object.entries(after).map(([part, time]) => [part, (time - (before[part] ?? 0)) / requests] as const)
  return { rps, p99, cpu: Object.fromEntries(cpu) }
}

function total({ cpu }: Round): number {
  return Object.values(cpu).reduce((sum, time) => sum + time, 0)
}

/** Returns the figures of a comparison. */
function compared(name: keyof typeof targets, ours: Round[], theirs: Round[], peerName: string): Figures {
  const figure = (read: (round: Round) => number, rest: Pick<Figure, 'unit' | 'target' | 'parts' | 'peerParts'>) => {
    const [own, other] = [ours.map(read), theirs.map(read)]
    const [value, peer] = [median(own), median(other)]
    return { value, peer, ratio: value / peer, noise: Math.max(noise(own), noise(other)), ...rest }
  }
  return {
    [`${name}_rps`]: figure(({ rps }) => rps, {
      unit: '/s',
      peerParts: peerName,
      target: `≥ ${targets[name]} of the peer`,
    }),
    [`${name}_p99_ms`]: figure(({ p99 }) => p99, { unit: 'ms', target: '≤ 1 of the peer' }),
    [`${name}_cpu_us`]: figure(total, { unit: 'µs', parts: partsOf(ours), peerParts: partsOf(theirs) }),
  }
}

/** Returns the median CPU time of each part, as a text. */
function partsOf(rounds: Round[]): string {
  const parts = Object.keys(rounds[0]?.cpu ?? {})
  return parts.map((part) => `${part} ${median(rounds.map(({ cpu }) => cpu[part] ?? 0)).toFixed(0)}`).join(' + ')
}
