// A tenant whose differences are left as they are, as its drift policy asks: looked at all the same. Status and conditions
// follow what was seen, and nothing on the engine is changed.
import type { Clock } from '../platform/clock.ts'
import { type ObservedHost, planSteps } from '../engines/index.ts'
import type { Stack } from '../stacks/index.ts'
import type { Condition, Status } from '../tenants/index.ts'
import { conditionsOf, driftConditions } from './conditions.ts'
import { healthInWords } from './health-in-words.ts'
import type { Snapshot } from './reconcile-store.ts'
import type { RegionProbe } from './region-probe.ts'

export interface Sight {
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
  { stack, host }: Sight,
  deps: ObserveDeps,
  signal: AbortSignal,
): Promise<Observed> {
  const { clock, wellStatus } = deps
  const steps = planSteps(stack, host)
  const at = clock.now()
  const faults = stack.state === 'stopped' ? [] : servicesDown(stack, host)
  // One that is as it was asked for, and was last seen well, is not asked again and again.
  const isSuspect = steps.length > 0 || snapshot.status !== wellStatus || isAmiss(snapshot)
  if (stack.state === 'running' && faults.length === 0 && isSuspect)
    faults.push(...(await runtimeFaults(snapshot, deps, signal)))
  const isWell = faults.length === 0
  const conditions = isWell && !isAmiss(snapshot) ? snapshot.conditions : seenConditions(snapshot, faults, at)
  // Whether there is drift is said under `report` alone.
  const reported = driftConditions(conditions, snapshot.driftPolicy === 'report' ? steps : [], at)
  return {
    isWell,
    status: isWell ? wellStatus : 'failed',
    reason: isWell
      ? null
      : `${faults.map(({ message }) => message).join(' ')} The drift policy "${snapshot.driftPolicy}" leaves it so.`,
    conditions: kept(snapshot.conditions, reported ?? conditions),
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

/** Something was not seen well, or not seen, the last time. */
function isAmiss({ conditions }: Snapshot): boolean {
  return conditions.some(({ type, status }) => status !== 'True' && type !== 'Disk' && type !== 'Drift')
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
      const says = health === undefined ? 'does not answer' : healthInWords(health)
      return [{ service: 'runtime', reason: 'Unhealthy', message: `The runtime ${says}.` }]
    }),
  )
  signal.throwIfAborted()
  return faults.flat().slice(0, 1)
}

/** What nobody could see is unknown; the route is the gateway's, which is not asked. */
function seenConditions(snapshot: Snapshot, faults: readonly Fault[], at: Date): Condition[] {
  const drift = snapshot.conditions.filter(({ type }) => type === 'Drift')
  const well = conditionsOf(snapshot, at, { status: 'True', reason: 'Observed', message: '' })
  return [...well.map((condition) => ({ ...condition, ...saidOf(condition.type, faults) })), ...drift]
}

function saidOf(
  type: Condition['type'],
  faults: readonly Fault[],
): Pick<Condition, 'status' | 'reason' | 'message'> | undefined {
  const [first] = faults
  if (first === undefined || type === 'Route' || type === 'Disk') return undefined
  const failed = ({ reason, message }: Fault) => ({ status: 'False' as const, reason, message })
  if (type === 'Services') return first.reason === 'NotRunning' ? failed(first) : undefined
  const own = faults.find(({ service }) => service === (type === 'Runtime' ? 'runtime' : 'postgres'))
  if (own !== undefined && type !== 'Home') return failed(own)
  return { status: 'Unknown', reason: 'NotObserved', message: '' }
}

/** A condition that says what it said before keeps its time. */
function kept(before: readonly Condition[], now: readonly Condition[]): Condition[] {
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
