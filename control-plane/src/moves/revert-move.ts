// Reverts one move while changes flow back into its old home: the same as a move, without a copy.
import { asReader, BackupError, readHomeObjects, type HomeObjects } from '../backups/index.ts'
import { replacedSchema } from '../homes/index.ts'
import { destinationOf, originOf } from './choose-ends.ts'
import { filesToCopy } from './copy-files.ts'
import type { Locations } from './locations.ts'
import type { MoveDeps } from './move-deps.ts'
import { MoveError } from './move-error.ts'
import { releaseLease } from './release-lease.ts'
import { isAtOrigin, isHeld, namesOf, streamOf, type MoveJob, type ReverseJob } from './move.ts'
import { rejectStructure } from './prepare-reverse.ts'
import { clearMark, closeOldHome, isSwitched, removeFollowing, removeReverse } from './remove-remains.ts'
import { rejectStopped } from './reject-stopped.ts'
import { readOldFiles, readReverseState } from './reverse-state.ts'
import { locationsOf, rejectUnlessActive, type Outcome } from './run-move.ts'
import { serveNewHome } from './serve-new-home.ts'
import { switchHome, waitForBackup } from './switch-home.ts'

const maxReads = 3
const rereadMilliseconds = 2_000

/** Completes a revert if its switch has happened; otherwise the reverse continues as before. */
export async function completeOrContinue(
  job: MoveJob,
  reverse: ReverseJob,
  deps: MoveDeps,
  signal: AbortSignal,
): Promise<Outcome> {
  const { tenantId } = job
  const locations = locationsOf(deps, job)
  const there = locationsOf(deps, reverse)
  const origin = originOf(job, deps)
  const isRemoved = await origin.isRemoved(signal)
  if (isRemoved) await rejectStopped(tenantId, (home) => isAtOrigin(job, home), deps)
  if ((!isRemoved && (await isSwitched(locations, job, signal))) || (await deps.ledger.isMoved(job))) {
    await clearMark(there, signal)
    await releaseLease(locations.target, tenantId, signal)
    await serveNewHome(job, deps, signal)
    await removeReverse(there, reverse, replacedSchema(tenantId), signal)
    await removeFollowing(locations, job, replacedSchema(tenantId), signal)
    await origin.removeRemains(signal)
    await deps.failpoint('move.cleaned')
    return 'moved'
  }
  await closeOldHome(there, signal)
  await originOf(reverse, deps).close(signal)
  await removeFollowing(locations, job, tenantId, signal)
  if (isHeld(job)) await deps.ledger.release(job, 'catch up', deps.epoch)
  return 'not moved'
}

/** Makes the old home the tenant's home again. @throws MoveError, BackupError */
export async function revertMove(job: MoveJob, deps: MoveDeps, signal: AbortSignal): Promise<void> {
  const { ledger, epoch, failpoint } = deps
  const { tenantId } = job
  const locations = locationsOf(deps, job)
  await ledger.begin(job, epoch)
  const copied = { rows: 0, bytes: 0 }
  await ledger.step(job, 'catch up', copied, epoch)
  await failpoint('move.before')
  await rejectUnlessActive(job, deps)
  await waitForBackup(job, deps, signal)
  const objects = await currentObjects(locations, deps, signal)
  const destination = destinationOf(job, deps)
  const prepare = async () => {
    await destination.openLogins(signal)
    return false
  }
  const present = await readOldFiles(locations.target, tenantId, signal)
  const files = await filesToCopy(job, destination, deps, signal, present)
  const stream = streamOf(tenantId, 'reverse')
  await destination.whileHeld(signal, (held) =>
    switchHome({ job, locations, objects, stream, copied, files, prepare }, deps, held),
  )
}

/**
 * Reads the objects of the new home. The service restores rights in a home at times, so that a difference counts only if
 * it is found again.
 * @throws MoveError when they are not those with which the reverse has begun
 */
export async function currentObjects(
  { source, target, tenantId }: Locations,
  { clock }: Pick<MoveDeps, 'clock'>,
  signal: AbortSignal,
): Promise<HomeObjects> {
  for (let reads = 1; ; reads++) {
    try {
      const objects = await asReader(source, tenantId, tenantId, signal, readAtOnce, namesOf(tenantId).source)
      const state = await readReverseState(target, tenantId, signal)
      if (state === undefined) throw new MoveError('The old home does not exist any more.', { isLasting: true })
      rejectStructure(objects, state.structure)
      return objects
    } catch (cause) {
      if (!(cause instanceof MoveError || cause instanceof BackupError) || reads >= maxReads) throw cause
      await clock.sleep(rereadMilliseconds, signal)
    }
  }

  async function readAtOnce(client: Parameters<typeof readHomeObjects>[0]): Promise<HomeObjects> {
    await client.query('begin isolation level repeatable read, read only')
    return readHomeObjects(client, tenantId, tenantId)
  }
}
