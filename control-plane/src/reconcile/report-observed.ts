// Observes a tenant whose drift policy leaves differences as they are. Status and conditions follow the observations,
// and nothing on the engine is changed.
import type { Clock } from '../platform/clock.ts'
import { type ObservedHost, planSteps } from '../engines/index.ts'
import type { Stack } from '../stacks/index.ts'
import type { Condition, Status } from '../tenants/index.ts'
import { conditionsWith, driftConditions, observed, type Part, type ConditionState } from './conditions.ts'
import { describeHealth } from './describe-health.ts'
import type { Snapshot } from './reconcile-store.ts'
import type { RegionProbe } from './region-probe.ts'

export interface StatusSource {
  stack: Stack
  /** Objects of the stack that exist. */
  host: ObservedHost
}

/** Result of the observation, to be recorded. */
export interface Observed {
  isHealthy: boolean
  status: Status
  reason: string | null
  conditions: Condition[]
}

interface Fault {
  /** Service that is not healthy. */
  service: 'postgres' | 'runtime'
  reason: 'NotRunning' | 'Unhealthy'
  message: string
}

const probeMilliseconds = 3_000

interface ObserveDeps {
  probe: Pick<RegionProbe, 'tenantHealth'>
  runtimeUrls: readonly string[]
  clock: Clock
  /** Status of a tenant that was observed as specified. */
  reachedStatus: Status
  /** The condition `Spread` in a region with several hosts; undefined in another one. */
  spread: ConditionState | undefined
}

/** Observes a tenant and changes nothing. @throws EngineError VOLUME_MISSING */
export async function observeOnly(
  snapshot: Snapshot,
  { stack, host }: StatusSource,
  deps: ObserveDeps,
  signal: AbortSignal,
): Promise<Observed> {
  const { clock, reachedStatus, spread } = deps
  const steps = planSteps(stack, host)
  const at = clock.now()
  const faults = stack.state === 'stopped' ? [] : servicesDown(stack, host)
  // A tenant that is as specified and was last healthy is not requested repeatedly.
  const isSuspect = steps.length > 0 || snapshot.status !== reachedStatus || isNotReady(snapshot, stack)
  if (stack.state === 'running' && faults.length === 0 && isSuspect)
    faults.push(...(await runtimeFaults(snapshot, deps, signal)))
  const isHealthy = faults.length === 0
  const known = { ...snapshot, conditions: withSpread(snapshot.conditions, spread, at) }
  const conditions =
    isHealthy && !isNotReady(snapshot, stack) ? known.conditions : seenConditions(known, stack, faults, at)
  // Only the policy `report` reports drift.
  const drift = driftConditions(conditions, snapshot.driftPolicy === 'report' ? steps : [], at)
  return {
    isHealthy,
    status: isHealthy ? reachedStatus : 'failed',
    reason: isHealthy
      ? null
      : `${faults.map(({ message }) => message).join(' ')} The drift policy "${snapshot.driftPolicy}" leaves it unchanged.`,
    conditions: withEarlierTimes(snapshot.conditions, drift ?? conditions),
  }
}

function withSpread(conditions: readonly Condition[], spread: ConditionState | undefined, at: Date): Condition[] {
  const observed_at = at.toISOString()
  return conditions.map((one) =>
    one.type === 'Spread' && spread !== undefined ? { ...one, ...spread, observed_at } : one,
  )
}

/** Whether the tenant's row already contains these observations. */
export function isRecorded(
  snapshot: Pick<Snapshot, 'status' | 'reason' | 'conditions'>,
  { status, reason, conditions }: Pick<Observed, 'status' | 'reason' | 'conditions'>,
): boolean {
  const { length } = snapshot.conditions
  return (
    status === snapshot.status &&
    reason === snapshot.reason &&
    conditions.length === length &&
    conditions.every((condition) => snapshot.conditions.includes(condition))
  )
}

/** Whether a part that is observed here was unhealthy or unknown at the last observation. */
function isNotReady({ conditions }: Snapshot, stack: Stack): boolean {
  const observedParts = seenParts(stack, []).map(([part]) => part)
  return observedParts.some((part) => conditions.find(({ type }) => type === part)?.status !== 'True')
}

function seenConditions(snapshot: Snapshot, stack: Stack, faults: readonly Fault[], at: Date): Condition[] {
  const observed_at = at.toISOString()
  const seen = new Map(seenParts(stack, faults).map(([part, state]) => [part, { type: part, ...state, observed_at }]))
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
    return [{ service: name.startsWith('runtime') ? 'runtime' : 'postgres', reason: 'NotRunning', message }]
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
      const reports = health === undefined ? 'does not respond' : describeHealth(health)
      return [{ service: 'runtime', reason: 'Unhealthy', message: `The runtime ${reports}.` }]
    }),
  )
  signal.throwIfAborted()
  return faults.flat().slice(0, 1)
}

/**
 * Returns the conditions of the observed parts. A part that could not be observed is unknown. The route is the
 * gateway's, which is not requested; of a stopped tenant only the services are observed.
 */
function seenParts(stack: Stack, faults: readonly Fault[]): [Part, ConditionState][] {
  const [first] = faults
  if (stack.state === 'stopped') return [['Services', observed]]
  if (first === undefined) return (['Services', 'Home', 'Database', 'Runtime'] as const).map((part) => [part, observed])
  const unknown: ConditionState = { status: 'Unknown', reason: 'NotObserved', message: '' }
  const failed = ({ reason, message }: Fault): ConditionState => ({ status: 'False', reason, message })
  const stateOf = (service: Fault['service']): ConditionState => {
    const own = faults.find((fault) => fault.service === service)
    return own === undefined ? unknown : failed(own)
  }
  return [
    ['Services', first.reason === 'NotRunning' ? failed(first) : observed],
    ['Home', unknown],
    ['Database', stateOf('postgres')],
    ['Runtime', stateOf('runtime')],
  ]
}

/** Gives conditions that have not changed their earlier times. */
function withEarlierTimes(before: readonly Condition[], now: readonly Condition[]): Condition[] {
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
