// A tenant whose differences are left as they are, as its drift policy asks: looked at all the same. Status and conditions
// follow what was seen, and nothing on the engine is changed.
import type { Clock } from '../platform/clock.ts'
import { type ObservedHost, planSteps } from '../engines/index.ts'
import type { Stack } from '../stacks/index.ts'
import type { Condition, Status } from '../tenants/index.ts'
import { conditionsWith, driftConditions, observed, type Part, type Reported } from './conditions.ts'
import { healthInWords } from './health-in-words.ts'
import type { Snapshot } from './reconcile-store.ts'
import type { RegionProbe } from './region-probe.ts'

export interface StatusSource {
  stack: Stack
  /** What exists of the stack. */
  host: ObservedHost
}

/** What is to be recorded. */
export interface Observed {
  isWell: boolean
  status: Status
  reason: string | null
  conditions: Condition[]
}

interface Fault {
  /** The service that is not well. */
  service: 'postgres' | 'runtime'
  reason: 'NotRunning' | 'Unhealthy'
  message: string
}

const probeMilliseconds = 3_000

interface ObserveDeps {
  probe: Pick<RegionProbe, 'tenantHealth'>
  runtimeUrls: readonly string[]
  clock: Clock
  /** Status of a tenant that is as it was asked for. */
  wellStatus: Status
}

/** @throws EngineError VOLUME_MISSING */
export async function observeOnly(
  snapshot: Snapshot,
  { stack, host }: StatusSource,
  deps: ObserveDeps,
  signal: AbortSignal,
): Promise<Observed> {
  const { clock, wellStatus } = deps
  const steps = planSteps(stack, host)
  const at = clock.now()
  const faults = stack.state === 'stopped' ? [] : servicesDown(stack, host)
  // One that is as it was asked for, and was last seen well, is not asked again and again.
  const isSuspect = steps.length > 0 || snapshot.status !== wellStatus || isAmiss(snapshot, stack)
  if (stack.state === 'running' && faults.length === 0 && isSuspect)
    faults.push(...(await runtimeFaults(snapshot, deps, signal)))
  const isWell = faults.length === 0
  const conditions =
    isWell && !isAmiss(snapshot, stack) ? snapshot.conditions : seenConditions(snapshot, stack, faults, at)
  // Whether there is drift is said under `report` alone.
  const reported = driftConditions(conditions, snapshot.driftPolicy === 'report' ? steps : [], at)
  return {
    isWell,
    status: isWell ? wellStatus : 'failed',
    reason: isWell
      ? null
      : `${faults.map(({ message }) => message).join(' ')} The drift policy "${snapshot.driftPolicy}" leaves it so.`,
    conditions: stored(snapshot.conditions, reported ?? conditions),
  }
}

/** Whether it is what the tenant's row says already. */
export function isKnown(snapshot: Snapshot, { status, conditions }: Observed): boolean {
  const { length } = snapshot.conditions
  return (
    status === snapshot.status &&
    conditions.length === length &&
    conditions.every((condition) => snapshot.conditions.includes(condition))
  )
}

/** Something that is looked at here was not seen well, or not seen, the last time. */
function isAmiss({ conditions }: Snapshot, stack: Stack): boolean {
  const polled = seenParts(stack, []).map(([part]) => part)
  return polled.some((part) => conditions.find(({ type }) => type === part)?.status !== 'True')
}

function seenConditions(snapshot: Snapshot, stack: Stack, faults: readonly Fault[], at: Date): Condition[] {
  const observed_at = at.toISOString()
  const seen = new Map(
    seenParts(stack, faults).map(([part, reported]) => [part, { type: part, ...reported, observed_at }]),
  )
  const drift = snapshot.conditions.filter(({ type }) => type === 'Drift')
  return [...conditionsWith(snapshot.conditions, seen), ...drift]
}

function servicesDown({ services }: Stack, { containers }: ObservedHost): Fault[] {
  return services.flatMap(({ name }): Fault[] => {
    const own = containers.filter(({ labels }) => labels.service === name)
    if (own.some(({ state, health }) => state === 'running' && health !== 'unhealthy')) return []
    const [first] = own
    const is = first === undefined ? 'absent' : first.state === 'running' ? first.health : first.state
    const message = `The service ${name} is not running: its container is ${is}.`
    return [{ service: name === 'postgres' ? 'postgres' : 'runtime', reason: 'NotRunning', message }]
  })
}

async function runtimeFaults(
  snapshot: Snapshot,
  { probe, runtimeUrls, clock }: ObserveDeps,
  signal: AbortSignal,
): Promise<Fault[]> {
  const { id, observedGeneration } = snapshot
  const bounded = AbortSignal.any([signal, clock.timeout(probeMilliseconds)])
  const faults = await Promise.all(
    runtimeUrls.map(async (url): Promise<Fault[]> => {
      const health = await probe.tenantHealth(url, id, bounded).catch(() => undefined)
      if (health?.status === 'healthy' && health.generation >= observedGeneration) return []
      const reports = health === undefined ? 'does not answer' : healthInWords(health)
      return [{ service: 'runtime', reason: 'Unhealthy', message: `The runtime ${reports}.` }]
    }),
  )
  signal.throwIfAborted()
  return faults.flat().slice(0, 1)
}

/**
 * What nobody could see any more is unknown. The route is the gateway's, which is not asked; of a tenant that is stopped nothing
 * but its services was looked at.
 */
function seenParts(stack: Stack, faults: readonly Fault[]): [Part, Reported][] {
  const [first] = faults
  if (stack.state === 'stopped') return [['Services', observed]]
  if (first === undefined) return (['Services', 'Home', 'Database', 'Runtime'] as const).map((part) => [part, observed])
  const unknown: Reported = { status: 'Unknown', reason: 'NotObserved', message: '' }
  const failed = ({ reason, message }: Fault): Reported => ({ status: 'False', reason, message })
  const reportedOf = (service: Fault['service']): Reported => {
    const own = faults.find((fault) => fault.service === service)
    return own === undefined ? unknown : failed(own)
  }
  return [
    ['Services', first.reason === 'NotRunning' ? failed(first) : observed],
    ['Home', unknown],
    ['Database', reportedOf('postgres')],
    ['Runtime', reportedOf('runtime')],
  ]
}

/** A condition that says what it said before keeps its time. */
function stored(before: readonly Condition[], now: readonly Condition[]): Condition[] {
  return now.map((condition) => before.find((known) => isSame(known, condition)) ?? condition)
}

function isSame(one: Condition, other: Condition): boolean {
  return (
    one.type === other.type &&
    one.status === other.status &&
    one.reason === other.reason &&
    one.message === other.message
  )
}
