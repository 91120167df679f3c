// The part of a move after the copy: applies the changes, compares the homes, and switches.
import type { HomeObjects } from '../backups/index.ts'
import { Pace } from '../platform/pace.ts'
import { abandon, compareHomes } from './compare-homes.ts'
import type { FileCopy } from './copy-files.ts'
import { followChanges, pendingBytes } from './follow-changes.ts'
import { holdAndSwitch } from './hold-and-switch.ts'
import type { Locations } from './locations.ts'
import type { MoveDeps } from './move-deps.ts'
import { MoveError } from './move-error.ts'
import type { MoveJob, Stream } from './move.ts'
import { isSwitched } from './remove-remains.ts'
import { withSessions } from './sessions.ts'

const backupPollMilliseconds = 2_000
const maxHolds = 5
const holdPauseMilliseconds = 2_000
const maxCatchUps = 10_000
/** The pace of a comparison, which reads the rows and writes none, as a multiple of that of the copy. */
const comparisonPace = 2

interface SwitchWork {
  job: MoveJob
  locations: Locations
  objects: HomeObjects
  stream: Stream
  /** The rows and bytes that were copied, to which those of changes are added. */
  copied: { rows: number; bytes: number }
  /** The copy of the files; absent if they stay where they are. */
  files?: FileCopy | undefined
  /** Called after the comparison, before requests are held. @returns whether changes can flow back after the switch */
  prepare: () => Promise<boolean>
}

/** Applies the changes to the copy, compares it with the home, and makes it the home. @throws MoveError */
export async function switchHome(
  { job, locations, objects, stream, copied, files, prepare }: SwitchWork,
  deps: MoveDeps,
  signal: AbortSignal,
): Promise<void> {
  const { ledger, epoch, failpoint, clock } = deps
  const { tenantId } = job
  const serviceTables = new Set(objects.tables.flatMap(({ name, isService }) => (isService ? [name] : [])))
  const broken = new AbortController()
  const cut = (reason: MoveError) => broken.abort(reason)
  const linked = AbortSignal.any([signal, broken.signal])
  await withSessions({ ...locations, stream }, linked, async (sessions) => {
    const follow = { ...sessions, tenantId, stream, serviceTables, failpoint }
    const catchUp = async () => {
      for (let round = 0; round < maxCatchUps; round++) {
        const begun = clock.now().getTime()
        const { rows } = await followChanges(follow)
        const milliseconds = clock.now().getTime() - begun
        copied.rows += rows
        const pending = await pendingBytes(sessions.slot, stream)
        await ledger.step(job, 'catch up', { ...copied, pending_bytes: pending }, epoch)
        signal.throwIfAborted()
        // The last round of a hold takes about as long as this one.
        if (rows === 0 || milliseconds < deps.holdMilliseconds / 3) return
      }
      throw new MoveError('The tenant changes its data faster than the move can copy the changes.')
    }
    const copyFiles = async (either: AbortSignal) => {
      copied.bytes += (await files?.round(sessions.admin, tenantId, either)) ?? 0
    }
    await catchUp()
    await copyFiles(signal)
    await failpoint('move.caught-up')
    await ledger.step(job, 'compare', copied, epoch)
    const pace = new Pace(comparisonPace * deps.bytesPerSecond, clock, signal)
    await compareHomes({ ...locations, pace }, objects, follow, signal)
    await failpoint('move.compared')
    const hasReverse = await prepare()
    for (let holds = 1; ; holds++) {
      await catchUp()
      await copyFiles(signal)
      await waitForBackup(job, deps, signal)
      try {
        const work = { ...locations, job, objects, sessions, stream, serviceTables, hasReverse, copyFiles, cut }
        await holdAndSwitch(work, deps, linked)
        return
      } catch (cause) {
        broken.signal.throwIfAborted()
        if (!(cause instanceof MoveError && cause.isTemporary) || (await isSwitched(locations, job, signal)))
          throw cause
        await ledger.release(job, 'catch up', epoch)
        if (holds >= maxHolds) throw new MoveError(cause.message, { cause })
        await abandon(follow)
        await ledger.step(job, 'catch up', { waits_for: cause.message }, epoch)
        await clock.sleep(holds * holdPauseMilliseconds, signal)
      }
    }
  })
}

/** Waits for the end of a backup, which reads the home from the database in which it has begun. */
export async function waitForBackup(
  job: MoveJob,
  { ledger, epoch, clock }: MoveDeps,
  signal: AbortSignal,
): Promise<void> {
  while (await ledger.hasBackup(job.tenantId)) {
    await ledger.step(job, job.step === undefined ? 'prepare' : 'catch up', { waits_for: 'a backup' }, epoch)
    await clock.sleep(backupPollMilliseconds, signal)
  }
}
