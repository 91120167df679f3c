// Carries out one move: completes or reverts what an earlier attempt has left, and then moves the home.
import { asAdmin, asReader, readHomeObjects } from '../backups/index.ts'
import { replacedSchema } from '../homes/index.ts'
import { isState } from '../platform/sql-state.ts'
import { Pace } from '../platform/pace.ts'
import { filesToCopy, type FileCopy } from './copy-files.ts'
import { copyHome, withSlot } from './copy-home.ts'
import { destinationOf, originOf } from './choose-ends.ts'
import type { MoveDeps } from './move-deps.ts'
import { MoveError } from './move-error.ts'
import { identitiesSql, obstacleSql, publishSql, restoreIdentitiesSql } from './move-sql.ts'
import { isAtOrigin, isHeld, namesOf, neverRevertible, streamOf, type Identity, type MoveJob } from './move.ts'
import type { Locations } from './locations.ts'
import { rejectStopped } from './reject-stopped.ts'
import { prepareReverse } from './prepare-reverse.ts'
import { serveNewHome } from './serve-new-home.ts'
import { isSwitched, removeFollowing, removeReverse, retainOldHome } from './remove-remains.ts'
import { switchHome, waitForBackup } from './switch-home.ts'

const lockNotAvailable = '55P03'
const maxLockTries = 20
const lockPauseMilliseconds = 500
const reportMilliseconds = 1_000

export function locationsOf(deps: MoveDeps, job: MoveJob): Locations {
  return { tenantId: job.tenantId, source: originOf(job, deps).location, target: destinationOf(job, deps).location }
}

/** The end of an attempt: the home is in the new database, with or without an old one for a revert, or it is not. */
export type Outcome = 'moved' | 'moved, revertible' | 'not moved'

/** Completes the move if its switch has happened; otherwise removes everything of it. */
export async function completeOrRevert(job: MoveJob, deps: MoveDeps, signal: AbortSignal): Promise<Outcome> {
  const locations = locationsOf(deps, job)
  const origin = originOf(job, deps)
  const isRemoved = await origin.isRemoved(signal)
  if (!isRemoved && (await isSwitched(locations, job, signal))) return complete(job, locations, deps, signal)
  // A completed move has removed the schema that shows the switch, or the services that have it do not run.
  const isMoved = await deps.ledger.isMoved(job)
  // The switch may have happened in services that do not run now. They show it when they run again.
  if (!isMoved && isRemoved && isHeld(job)) {
    await origin.ensureRunning(signal)
    await rejectStopped(job.tenantId, (home) => isAtOrigin(job, home), deps)
  }
  if (isMoved) {
    await serveNewHome(job, deps, signal)
    await removeFollowing(locations, job, replacedSchema(job.tenantId), signal)
    await removeReverse(locations, job, job.tenantId, signal)
    await origin.removeRemains(signal)
    return 'moved'
  }
  await destinationOf(job, deps).removeCopy(async () => {
    if (isRemoved) return
    await removeFollowing(locations, job, job.tenantId, signal)
    await removeReverse(locations, job, job.tenantId, signal)
    await origin.removeSlot(streamOf(job.tenantId, 'move'), signal)
  }, signal)
  if (isHeld(job)) await deps.ledger.release(job, 'catch up', deps.epoch)
  return 'not moved'
}

/** Moves the home. Nothing of an earlier attempt is left. @throws MoveError, BackupError */
export async function moveHome(job: MoveJob, deps: MoveDeps, signal: AbortSignal): Promise<void> {
  const { ledger, epoch, failpoint } = deps
  const locations = locationsOf(deps, job)
  await ledger.begin(job, epoch)
  await ledger.step(job, 'prepare', { rows: 0, bytes: 0 }, epoch)
  await failpoint('move.before')
  await rejectObstacles(job, locations, deps, signal)
  const destination = destinationOf(job, deps)
  await destination.prepare(signal)
  await failpoint('move.prepared')
  const files = await filesToCopy(job, destination, deps, signal)
  const copy = (either: AbortSignal) => copyAndSwitch(job, locations, files, deps, either)
  await destination.whileHeld(signal, copy)
}

/** Copies the home, and makes the copy the home. */
async function copyAndSwitch(
  job: MoveJob,
  locations: Locations,
  files: FileCopy | undefined,
  deps: MoveDeps,
  signal: AbortSignal,
): Promise<void> {
  const { ledger, epoch, failpoint, clock } = deps
  await publish(job, locations, deps, signal)
  await failpoint('move.published')
  const copied = { rows: 0, bytes: 0 }
  const ended = new AbortController()
  const stopReporting = clock.every(reportMilliseconds, () => {
    ledger.step(job, 'copy', copied, epoch).catch((cause: unknown) => {
      // The move is canceled, or its tenant is deleted.
      if (cause instanceof MoveError) ended.abort(cause)
    })
  })
  const either = AbortSignal.any([signal, ended.signal])
  const objects = await withSlot(locations, either, async (snapshot) => {
    await failpoint('move.slot-created')
    await ledger.step(job, 'copy', copied, epoch)
    const onProgress = (rows: number, bytes: number) => Object.assign(copied, { rows, bytes })
    const onError = (error: unknown) =>
      deps.log.warn({ tenant: job.tenantId, err: error }, 'The copy of a home was interrupted by an error.')
    const pace = new Pace(deps.bytesPerSecond, clock, either)
    return copyHome({ ...locations, migrations: deps.migrations, pace, onError, onProgress }, snapshot, either)
  }).finally(stopReporting)
  // The copy has the identities that the move has given the source.
  await asAdmin(locations.target, signal, (client) =>
    client.query(restoreIdentitiesSql(job.tenantId, job.identities ?? [])),
  )
  await failpoint('move.copied')
  const prepare = async () => {
    const reason = await prepareReverse(job, locations, objects, deps, signal)
    await ledger.recordReverse(job, reason, epoch)
    return reason === undefined
  }
  const stream = streamOf(job.tenantId, 'move')
  await switchHome({ job, locations, objects, stream, copied, files, prepare }, deps, signal)
}

/** Completes a move whose schema was renamed: from now on, only a revert leads back. */
async function complete(job: MoveJob, locations: Locations, deps: MoveDeps, signal: AbortSignal): Promise<Outcome> {
  const { failpoint } = deps
  const { tenantId } = job
  const isServed = await serveNewHome(job, deps, signal)
  const canBeReverted = isServed && neverRevertible(job) === undefined
  const isRevertible = canBeReverted && (await retainOldHome(locations, job, signal))
  if (isRevertible) await originOf(job, deps).close(signal)
  await failpoint('move.retained')
  await removeFollowing(locations, job, isRevertible ? tenantId : replacedSchema(tenantId), signal)
  if (!isRevertible) {
    await removeReverse(locations, job, tenantId, signal)
    if (!isServed) await destinationOf(job, deps).removeUnserved(signal)
    await originOf(job, deps).removeRemains(signal)
  }
  await failpoint('move.cleaned')
  return isRevertible ? 'moved, revertible' : 'moved'
}

/** Rejects a tenant that is not active, or whose home is not where the move begins. @throws MoveError */
export async function rejectUnlessActive(job: MoveJob, deps: MoveDeps): Promise<void> {
  const tenant = await deps.tenant(job.tenantId)
  if (tenant?.desired !== 'active' || !isAtOrigin(job, tenant))
    throw new MoveError('The tenant is not active any more, or its home is in another database.')
}

async function rejectObstacles(
  job: MoveJob,
  { source }: Locations,
  deps: MoveDeps,
  signal: AbortSignal,
): Promise<void> {
  await rejectUnlessActive(job, deps)
  await waitForBackup(job, deps, signal)
  const { rows } = await asAdmin(source, signal, (client) =>
    client.query<{ what: string }>(obstacleSql, [`"${job.tenantId}"`]),
  )
  if (rows[0] !== undefined) throw new MoveError(rows[0].what)
}

/** Publishes the changes of the home's tables. */
async function publish(job: MoveJob, { source }: Locations, deps: MoveDeps, signal: AbortSignal): Promise<void> {
  const { tenantId } = job
  const read = (client: Parameters<typeof readHomeObjects>[0]) => readHomeObjects(client, tenantId, tenantId)
  const { tables } = await asReader(source, tenantId, tenantId, signal, read, namesOf(tenantId).source)
  const names = tables.map(({ name }) => name)
  await asAdmin(source, signal, async (client) => {
    const { rows: identities } = await client.query<Identity>(identitiesSql, [`"${tenantId}"`, names])
    await deps.ledger.recordIdentities(job, identities, deps.epoch)
    // What is recorded is what is removed at the end of this attempt, too.
    job.identities = identities
    for (let tries = 1; ; tries++) {
      try {
        await client.query(publishSql(tenantId, streamOf(tenantId, 'move'), names, identities))
        return
      } catch (cause) {
        if (!isState(cause, lockNotAvailable)) throw cause
        if (tries >= maxLockTries)
          throw new MoveError('A table of the home could not be locked: a transaction has not ended.', { cause })
        await deps.ledger.step(job, 'prepare', { waits_for: 'a transaction of the tenant' }, deps.epoch)
        await deps.clock.sleep(lockPauseMilliseconds, signal)
      }
    }
  })
}
