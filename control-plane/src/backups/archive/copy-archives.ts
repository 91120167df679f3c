// Copies the files of archives to the targets that lack them. A copy is read back and decrypted before it counts.
import type { Clock } from '../../platform/clock.ts'
import type { Leadership } from '../../platform/leader.ts'
import type { Log } from '../../platform/log.ts'
import { repeat } from '../../platform/repeat.ts'
import { decrypted } from '../encrypted-stream.ts'
import { baseFile, fileContext } from './file-names.ts'
import type { Archive } from './archive.ts'
import { drain, type ArchiveFiles } from './archive-files.ts'
import { aside, type ArchiveTarget } from './archive-target.ts'
import { logFiles } from './log-files.ts'
import type { ArchiveLedger } from './store-archives.ts'
import { isSegment } from './wal.ts'

/** The dependencies of the copies of archives. */
export interface ArchiveCopyDeps {
  ledger: Pick<ArchiveLedger, 'key' | 'stored' | 'isStored'>
  files: ArchiveFiles
  clock: Clock
  log: Pick<Log, 'warn'>
}

const copyMs = 60_000
/** After this time, everything of an archive in a target is listed again, in case that something was lost there. */
const listMs = 3_600_000

/** No target has a file: it has expired meanwhile, or it is lost. Everything else can still be copied. */
class MissingFileError extends Error {}

/** The names of the files that are known to be in one target of one archive. */
interface Copied {
  listedAt: number
  /** Every segment until this one is there. */
  segment: string | undefined
  bases: Set<string>
}

/** Creates the job, which runs while this control plane leads. With one target there is nothing to copy. */
export function runArchiveCopies(deps: ArchiveCopyDeps): (leadership: Leadership) => Promise<void> {
  const { clock, log, files } = deps
  return async ({ lost }) => {
    const copyTo = createArchiveCopier(deps)
    const follow = (to: ArchiveTarget) => {
      const work = async () => {
        await copyTo(to, lost)
        return copyMs
      }
      const onError = (error: unknown) =>
        log.warn({ target: to.name, err: error }, 'An archive could not be copied to a target. It is retried.')
      return repeat({ clock, work, onError }, lost)
    }
    if (files.targets.length > 1) await Promise.all(files.targets.map(follow))
  }
}

/**
 * Returns a function that copies everything that a target lacks to it. A file that no target has is reported after the others
 * were copied.
 */
export function createArchiveCopier({ ledger, files, clock }: Omit<ArchiveCopyDeps, 'log'>) {
  const known = new Map<string, Copied>()

  const copyFile = async (archive: Archive, name: string, to: ArchiveTarget, signal: AbortSignal): Promise<void> => {
    const opening = { key: await ledger.key(archive.id), context: fileContext(archive.id, name) }
    let failure: Error | undefined
    const fail = (cause: unknown) => {
      failure = cause instanceof Error ? cause : new Error('The file could not be copied.', { cause })
      return false
    }
    for (const from of files.targets) {
      const has = from === to ? Promise.resolve(false) : from.has(archive.id, name)
      if (!(await has.catch(fail))) continue
      try {
        await to.write(archive.id, name, from.read(archive.id, name, signal), signal)
        await drain(decrypted(to.read(archive.id, name, signal), opening.key, opening.context))
        return
      } catch (cause) {
        fail(cause)
        await to.remove(archive.id, name).catch(() => undefined)
        signal.throwIfAborted()
      }
    }
    throw failure ?? new MissingFileError(`No target has the file ${name} of the archive ${archive.id}.`)
  }

  const copyInto = async (archive: Archive, to: ArchiveTarget, signal: AbortSignal): Promise<void> => {
    const id = `${to.name}/${archive.id}`
    const now = clock.now().getTime()
    let copied = known.get(id)
    let listed: Set<string> | undefined
    if (copied === undefined || now - copied.listedAt >= listMs) {
      listed = new Set(await to.names(archive.id))
      copied = { listedAt: now, segment: undefined, bases: new Set() }
      known.set(id, copied)
    }
    const ensure = async (name: string) => {
      signal.throwIfAborted()
      if (!(listed?.has(name) ?? (await to.has(archive.id, name)))) await copyFile(archive, name, to, signal)
    }
    let missing: MissingFileError | undefined
    for (const base of archive.bases) {
      if (base.completeAt === undefined || copied.bases.has(base.id)) continue
      const name = baseFile(base.id)
      try {
        await ensure(name)
      } catch (cause) {
        if (!(cause instanceof MissingFileError)) throw cause
        missing ??= cause
        continue
      }
      // An upload that was interrupted at its very end has stored the file, and remains.
      if (listed?.has(name + aside) === true) await to.remove(archive.id, name + aside)
      copied.bases.add(base.id)
    }
    await copySegments(archive, copied, ensure)
    if (missing !== undefined) throw missing
  }

  const copySegments = async (
    { id, firstSegment, lastSegment }: Archive,
    copied: Copied,
    ensure: (name: string) => Promise<void>,
  ): Promise<void> => {
    if (firstSegment === undefined || lastSegment === undefined) return
    const start = copied.segment === undefined || copied.segment < firstSegment ? firstSegment : copied.segment
    for (const name of await logFiles(id, start, lastSegment, files)) {
      if (name === copied.segment) continue
      await ensure(name)
      if (isSegment(name)) copied.segment = name
    }
  }

  return async (to: ArchiveTarget, signal: AbortSignal): Promise<void> => {
    const archives = await ledger.stored()
    const ids = new Set(archives.map(({ id }) => `${to.name}/${id}`))
    for (const id of known.keys()) if (id.startsWith(`${to.name}/`) && !ids.has(id)) known.delete(id)
    let missing: MissingFileError | undefined
    for (const archive of archives) {
      try {
        await copyInto(archive, to, signal)
      } catch (cause) {
        if (!(cause instanceof MissingFileError)) throw cause
        missing ??= cause
      }
      // An archive that was removed meanwhile must not come back.
      if (!(await ledger.isStored(archive.id))) await to.removeAll(archive.id)
    }
    if (missing !== undefined) throw missing
  }
}
