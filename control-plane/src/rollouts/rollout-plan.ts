// Plans the next step of a rollout from its record and from observations. Pure. It is planned again after any interruption.
import type { MovedTenant, Rollout, RolloutState, RolloutSubject } from './rollout.ts'

export interface RolloutObservations {
  /** Tenants of the region, the oldest first, without those that are being deleted. */
  subjects: readonly RolloutSubject[]
  /**
   * Health of the tenants in `moving`, as their runtimes report it; absent if it was not requested or no runtime
   * responded.
   */
  health: ReadonlyMap<string, 'healthy' | 'unhealthy'>
  /** Time from which deadlines count, because no control plane may have worked before. */
  since: Date
}

export type RolloutStep =
  | { do: 'wait' }
  /** Records the observed states of tenants. */
  | { do: 'record'; tenants: MovedTenant[] }
  /** Moves tenants to the new image. The rollout does not wait for wave 0. */
  | { do: 'move'; wave: number; tenantIds: string[] }
  | { do: 'roll-back'; error: string }
  | { do: 'return'; tenantIds: string[] }
  | { do: 'finish'; state: RolloutState; error: string | undefined }

/** Maximum number of tenants per step for which the rollout does not wait. */
const maxBatchSize = 50
/** Additional time on the way back, because the reconciler may still be at its last attempt with the new image. */
const extraReturnSeconds = 150
/** Kinds of operations that a change of image must not interrupt. */
const uninterruptible: RolloutSubject['operations'] = ['backup', 'restore', 'verify']

export function planRollout(rollout: Rollout, observations: RolloutObservations, now: Date): RolloutStep {
  return rollout.state === 'rolling_back'
    ? planReturn(rollout, observations, now)
    : planWaves(rollout, observations, now)
}

function planWaves(rollout: Rollout, observations: RolloutObservations, now: Date): RolloutStep {
  const { tenants, wave, waveSize } = rollout
  const subjects = byId(observations.subjects)
  for (const moved of tenants) {
    const error = faultOf(moved, subjects.get(moved.tenantId), observations, rollout, now)
    if (error !== undefined) return { do: 'roll-back', error }
  }
  const seen = tenants.map((moved) => stateAfterMove(moved, subjects.get(moved.tenantId), observations, rollout, now))
  if (seen.some((moved, at) => moved !== tenants[at])) return { do: 'record', tenants: seen }
  if (tenants.some(({ state }) => state === 'moving')) return { do: 'wait' }

  const waiting = remaining(rollout, observations.subjects)
  const ready = waiting.filter(isReady)
  if (ready.length > 0) {
    const chosen = wave === 0 ? canaryOf(rollout, waiting) : ready.slice(0, Math.min(2 ** wave, waveSize))
    return chosen.every(isReady)
      ? { do: 'move', wave: wave + 1, tenantIds: chosen.map(({ id }) => id) }
      : { do: 'wait' }
  }
  const resting = waiting.filter(isResting)
  if (resting.length < waiting.length) return { do: 'wait' }
  if (resting.length === 0) return { do: 'finish', state: 'succeeded', error: undefined }
  return { do: 'move', wave: 0, tenantIds: resting.slice(0, maxBatchSize).map(({ id }) => id) }
}

/** Returns the named canary while it exists, otherwise the oldest running tenant. */
function canaryOf({ canary }: Rollout, waiting: readonly RolloutSubject[]): RolloutSubject[] {
  const named = waiting.find((subject) => subject.id === canary && (isReady(subject) || subject.operations.length > 0))
  const chosen = named ?? waiting.find(isReady)
  return chosen === undefined ? [] : [chosen]
}

/**
 * Returns the tenants that have another image and are not in the rollout yet. A tenant whose creation failed gets the
 * region's image.
 */
function remaining({ tenants, imageId }: Rollout, subjects: readonly RolloutSubject[]): RolloutSubject[] {
  const included = new Set(tenants.map(({ tenantId }) => tenantId))
  return subjects.filter(
    ({ id, image, status }) => !included.has(id) && image !== imageId && !(image === undefined && status === 'failed'),
  )
}

/** Whether a tenant runs and is healthy without an operation, so that a failure after the move is caused by the image. */
export function isReady({ desired, status, operations, generation, observedGeneration }: RolloutSubject): boolean {
  return desired === 'active' && status === 'ready' && operations.length === 0 && generation === observedGeneration
}

/** Whether a tenant gets the image at its next start, or is unhealthy anyway. */
export function isResting({ desired, status, operations, image }: RolloutSubject): boolean {
  if (status === 'failed') return image !== undefined && !hasUninterruptible(operations)
  return (
    operations.length === 0 &&
    ((desired === 'paused' && status === 'paused') || (desired === 'suspended' && status === 'suspended'))
  )
}

/** Whether a tenant can return. Uninterruptible operations must end first. */
export function isReturnable({ operations, status }: RolloutSubject): boolean {
  return operations.every((kind) => kind === 'upgrade') || (status === 'failed' && !hasUninterruptible(operations))
}

function hasUninterruptible(operations: RolloutSubject['operations']): boolean {
  return operations.some((kind) => uninterruptible.includes(kind))
}

function faultOf(
  moved: MovedTenant,
  subject: RolloutSubject | undefined,
  observations: RolloutObservations,
  { deadlineSeconds }: Rollout,
  now: Date,
): string | undefined {
  const { tenantId, state, wave, wellSince } = moved
  if (subject?.desired !== 'active' || wave === 0) return undefined
  if ((state === 'moving' || state === 'moved') && subject.status === 'failed')
    return `The tenant ${tenantId} failed with the new image.`
  if (state !== 'moving' || isHealthy(moved, subject, observations)) return undefined
  if (wellSince !== undefined && observations.health.get(tenantId) === 'unhealthy')
    return `The tenant ${tenantId} became unhealthy with the new image.`
  return isOverdue(moved, observations, deadlineSeconds, now)
    ? `The tenant ${tenantId} was not healthy with the new image within ${deadlineSeconds} s.`
    : undefined
}

function stateAfterMove(
  moved: MovedTenant,
  subject: RolloutSubject | undefined,
  observations: RolloutObservations,
  { soakSeconds }: Rollout,
  now: Date,
): MovedTenant {
  if (moved.state === 'gone') return moved
  if (subject === undefined) return { ...moved, state: 'gone' }
  if (moved.state !== 'moving') return moved
  if (subject.desired !== 'active') return { ...moved, state: 'moved' }
  if (!isHealthy(moved, subject, observations))
    return moved.wellSince === undefined ? moved : { ...moved, wellSince: undefined }
  const wellSince = moved.wellSince ?? now
  if (secondsSince(wellSince, now) >= soakSeconds) return { ...moved, wellSince, state: 'moved' }
  return moved.wellSince === undefined ? { ...moved, wellSince } : moved
}

function isHealthy(
  { tenantId, generation }: MovedTenant,
  subject: RolloutSubject,
  { health }: RolloutObservations,
): boolean {
  return subject.status === 'ready' && subject.observedGeneration >= generation && health.get(tenantId) === 'healthy'
}

function isOverdue(
  { movedAt }: MovedTenant,
  { since }: RolloutObservations,
  deadlineSeconds: number,
  now: Date,
): boolean {
  return secondsSince(movedAt > since ? movedAt : since, now) >= deadlineSeconds
}

function planReturn(rollout: Rollout, observations: RolloutObservations, now: Date): RolloutStep {
  const { tenants } = rollout
  const subjects = byId(observations.subjects)
  const seen = tenants.map((moved) => stateAfterReturn(moved, subjects.get(moved.tenantId), observations, rollout, now))
  if (seen.some((moved, at) => moved !== tenants[at])) return { do: 'record', tenants: seen }
  const away = tenants.filter(({ state }) => state === 'moving' || state === 'moved')
  const returnable = away.filter(({ tenantId }) => {
    const subject = subjects.get(tenantId)
    return subject !== undefined && isReturnable(subject)
  })
  if (returnable.length > 0)
    return { do: 'return', tenantIds: returnable.slice(0, maxBatchSize).map(({ tenantId }) => tenantId) }
  if (away.length > 0 || tenants.some(({ state }) => state === 'returning')) return { do: 'wait' }
  const lost = tenants.filter(({ state }) => state === 'lost').map(({ tenantId }) => tenantId)
  if (lost.length === 0) return { do: 'finish', state: 'rolled_back', error: rollout.error }
  return {
    do: 'finish',
    state: 'failed',
    error: `${rollout.error ?? ''} Tenants that are not healthy with the former image either: ${lost.join(', ')}.`,
  }
}

function stateAfterReturn(
  moved: MovedTenant,
  subject: RolloutSubject | undefined,
  observations: RolloutObservations,
  { deadlineSeconds }: Rollout,
  now: Date,
): MovedTenant {
  if (moved.state === 'gone') return moved
  if (subject === undefined) return { ...moved, state: 'gone' }
  if (moved.state !== 'returning') return moved
  const isSettled = subject.observedGeneration >= moved.generation && subject.status !== 'failed'
  if (isSettled || moved.wave === 0) return { ...moved, state: 'returned' }
  return subject.status === 'failed' && isOverdue(moved, observations, deadlineSeconds + extraReturnSeconds, now)
    ? { ...moved, state: 'lost' }
    : moved
}

function byId(subjects: readonly RolloutSubject[]): ReadonlyMap<string, RolloutSubject> {
  return new Map(subjects.map((subject) => [subject.id, subject]))
}

function secondsSince(then: Date, now: Date): number {
  return (now.getTime() - then.getTime()) / 1000
}
