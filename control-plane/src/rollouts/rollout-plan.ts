// The next step of a rollout, from what is recorded of it and what is seen. Pure; taken again after any interruption.
import type { MovedTenant, Rollout, RolloutState, RolloutSubject } from './rollout.ts'

export interface RolloutStatusSource {
  /** Of the region, oldest first; tenants that are being deleted are not among them. */
  subjects: readonly RolloutSubject[]
  /** What the runtimes of the tenants in `moving` say; absent: not asked, or no answer. */
  health: ReadonlyMap<string, 'healthy' | 'unhealthy'>
  /** Nobody may have worked before that: no time is over earlier. */
  since: Date
}

export type RolloutStep =
  | { do: 'wait' }
  /** What was seen of tenants that it has come to. */
  | { do: 'record'; tenants: MovedTenant[] }
  /** Wave 0 is not waited for. */
  | { do: 'move'; wave: number; tenantIds: string[] }
  | { do: 'turn-back'; error: string }
  | { do: 'return'; tenantIds: string[] }
  | { do: 'finish'; state: RolloutState; error: string | undefined }

/** At once, where nobody waits. */
const batch = 50
/** On the way back the reconciler may first be at its last try with the new image, and wait for the next one. */
const timeoutSeconds = 150
/** Not to be cut short by a change of image. */
const lasting: RolloutSubject['operations'] = ['backup', 'restore', 'verify']

export function planRollout(rollout: Rollout, statusSource: RolloutStatusSource, now: Date): RolloutStep {
  return rollout.state === 'rolling_back'
    ? planReturn(rollout, statusSource, now)
    : planWaves(rollout, statusSource, now)
}

function planWaves(rollout: Rollout, statusSource: RolloutStatusSource, now: Date): RolloutStep {
  const { tenants, wave, waveSize } = rollout
  const subjects = byId(statusSource.subjects)
  for (const moved of tenants) {
    const error = faultOf(moved, subjects.get(moved.tenantId), statusSource, rollout, now)
    if (error !== undefined) return { do: 'turn-back', error }
  }
  const seen = tenants.map((moved) => lookForward(moved, subjects.get(moved.tenantId), statusSource, rollout, now))
  if (seen.some((moved, at) => moved !== tenants[at])) return { do: 'record', tenants: seen }
  if (tenants.some(({ state }) => state === 'moving')) return { do: 'wait' }

  const left = remaining(rollout, statusSource.subjects)
  const ready = left.filter(isReady)
  if (ready.length > 0) {
    const chosen = wave === 0 ? canaryOf(rollout, left) : ready.slice(0, Math.min(2 ** wave, waveSize))
    return chosen.every(isReady)
      ? { do: 'move', wave: wave + 1, tenantIds: chosen.map(({ id }) => id) }
      : { do: 'wait' }
  }
  const resting = left.filter(isResting)
  if (resting.length < left.length) return { do: 'wait' }
  if (resting.length === 0) return { do: 'finish', state: 'succeeded', error: undefined }
  return { do: 'move', wave: 0, tenantIds: resting.slice(0, batch).map(({ id }) => id) }
}

/** The one that was named as long as it is there, else the oldest that runs. */
function canaryOf({ canary }: Rollout, left: readonly RolloutSubject[]): RolloutSubject[] {
  const named = left.find((subject) => subject.id === canary && (isReady(subject) || subject.operations.length > 0))
  const chosen = named ?? left.find(isReady)
  return chosen === undefined ? [] : [chosen]
}

/** Who has another image and has not been come to; what could not be made so far gets the region's. */
function remaining({ tenants, imageId }: Rollout, subjects: readonly RolloutSubject[]): RolloutSubject[] {
  const come = new Set(tenants.map(({ tenantId }) => tenantId))
  return subjects.filter(
    ({ id, image, status }) => !come.has(id) && image !== imageId && !(image === undefined && status === 'failed'),
  )
}

/** Runs well, and nothing is under way: if it is not well afterwards, that is the image's doing. */
export function isReady({ desired, status, operations, generation, observedGeneration }: RolloutSubject): boolean {
  return desired === 'active' && status === 'ready' && operations.length === 0 && generation === observedGeneration
}

/** Gets the image with its next start, or is not well anyway. */
export function isResting({ desired, status, operations, image }: RolloutSubject): boolean {
  if (status === 'failed') return image !== undefined && !hasLasting(operations)
  return (
    operations.length === 0 &&
    ((desired === 'paused' && status === 'paused') || (desired === 'suspended' && status === 'suspended'))
  )
}

/** What must not be superseded is waited for. */
export function isReturnable({ operations, status }: RolloutSubject): boolean {
  return operations.every((kind) => kind === 'upgrade') || (status === 'failed' && !hasLasting(operations))
}

function hasLasting(operations: RolloutSubject['operations']): boolean {
  return operations.some((kind) => lasting.includes(kind))
}

function faultOf(
  moved: MovedTenant,
  subject: RolloutSubject | undefined,
  statusSource: RolloutStatusSource,
  { deadlineSeconds }: Rollout,
  now: Date,
): string | undefined {
  const { tenantId, state, wave, wellSince } = moved
  if (subject?.desired !== 'active' || wave === 0) return undefined
  if ((state === 'moving' || state === 'moved') && subject.status === 'failed')
    return `${tenantId} failed with the new image`
  if (state !== 'moving' || isWell(moved, subject, statusSource)) return undefined
  if (wellSince !== undefined && statusSource.health.get(tenantId) === 'unhealthy')
    return `${tenantId} got unhealthy with the new image`
  return isOverdue(moved, statusSource, deadlineSeconds, now)
    ? `${tenantId} was not well with the new image within ${deadlineSeconds} s`
    : undefined
}

function lookForward(
  moved: MovedTenant,
  subject: RolloutSubject | undefined,
  statusSource: RolloutStatusSource,
  { soakSeconds }: Rollout,
  now: Date,
): MovedTenant {
  if (moved.state === 'gone') return moved
  if (subject === undefined) return { ...moved, state: 'gone' }
  if (moved.state !== 'moving') return moved
  if (subject.desired !== 'active') return { ...moved, state: 'moved' }
  if (!isWell(moved, subject, statusSource))
    return moved.wellSince === undefined ? moved : { ...moved, wellSince: undefined }
  const wellSince = moved.wellSince ?? now
  if (secondsSince(wellSince, now) >= soakSeconds) return { ...moved, wellSince, state: 'moved' }
  return moved.wellSince === undefined ? { ...moved, wellSince } : moved
}

function isWell(
  { tenantId, generation }: MovedTenant,
  subject: RolloutSubject,
  { health }: RolloutStatusSource,
): boolean {
  return subject.status === 'ready' && subject.observedGeneration >= generation && health.get(tenantId) === 'healthy'
}

function isOverdue(
  { movedAt }: MovedTenant,
  { since }: RolloutStatusSource,
  deadlineSeconds: number,
  now: Date,
): boolean {
  return secondsSince(movedAt > since ? movedAt : since, now) >= deadlineSeconds
}

function planReturn(rollout: Rollout, statusSource: RolloutStatusSource, now: Date): RolloutStep {
  const { tenants } = rollout
  const subjects = byId(statusSource.subjects)
  const seen = tenants.map((moved) => lookBack(moved, subjects.get(moved.tenantId), statusSource, rollout, now))
  if (seen.some((moved, at) => moved !== tenants[at])) return { do: 'record', tenants: seen }
  const away = tenants.filter(({ state }) => state === 'moving' || state === 'moved')
  const returnable = away.filter(({ tenantId }) => {
    const subject = subjects.get(tenantId)
    return subject !== undefined && isReturnable(subject)
  })
  if (returnable.length > 0)
    return { do: 'return', tenantIds: returnable.slice(0, batch).map(({ tenantId }) => tenantId) }
  if (away.length > 0 || tenants.some(({ state }) => state === 'returning')) return { do: 'wait' }
  const lost = tenants.filter(({ state }) => state === 'lost').map(({ tenantId }) => tenantId)
  if (lost.length === 0) return { do: 'finish', state: 'rolled_back', error: rollout.error }
  return {
    do: 'finish',
    state: 'failed',
    error: `${rollout.error ?? ''}; not well with the former image either: ${lost.join(', ')}`,
  }
}

function lookBack(
  moved: MovedTenant,
  subject: RolloutSubject | undefined,
  statusSource: RolloutStatusSource,
  { deadlineSeconds }: Rollout,
  now: Date,
): MovedTenant {
  if (moved.state === 'gone') return moved
  if (subject === undefined) return { ...moved, state: 'gone' }
  if (moved.state !== 'returning') return moved
  const isSettled = subject.observedGeneration >= moved.generation && subject.status !== 'failed'
  if (isSettled || moved.wave === 0) return { ...moved, state: 'returned' }
  return subject.status === 'failed' && isOverdue(moved, statusSource, deadlineSeconds + timeoutSeconds, now)
    ? { ...moved, state: 'lost' }
    : moved
}

function byId(subjects: readonly RolloutSubject[]): ReadonlyMap<string, RolloutSubject> {
  return new Map(subjects.map((subject) => [subject.id, subject]))
}

function secondsSince(then: Date, now: Date): number {
  return (now.getTime() - then.getTime()) / 1000
}
