// The archive of a tenant's database: base backups, and the WAL since the first of them. Pure.

/**
 * An uninterrupted series of WAL segments with its base backups. After a gap a tenant has a further archive. `open`:
 * segments are added. `ended`: no more follow. `removing`: its files are being removed.
 */
export interface Archive {
  id: string
  tenantId: string
  state: 'open' | 'ended' | 'removing'
  /** The first and the last segment that are stored; undefined before the first one. */
  firstSegment: string | undefined
  lastSegment: string | undefined
  /** The time until which every commit is in a stored segment; undefined before it is known. */
  latest: Date | undefined
  /** Stored bytes, compressed and encrypted. */
  bytes: number
  /** The reason why the last attempt to add to it failed, or why it has ended; undefined without a failure. */
  error: string | undefined
  createdAt: Date
  bases: readonly Base[]
}

/** A base backup. It can be used as soon as the segments that it needs are stored. */
export interface Base {
  id: string
  /** The segments in which it begins and ends; undefined while it is being taken. */
  startSegment: string | undefined
  stopSegment: string | undefined
  /** A time after its end; undefined while it is being taken. */
  completeAt: Date | undefined
  createdAt: Date
}

/** A base backup from which the tenant can be recovered. */
export interface UsableBase {
  id: string
  startSegment: string
  /** The earliest time to which it can be recovered. */
  from: Date
}

/** A period in which each moment can be recovered. */
export interface Range {
  from: Date
  to: Date
}

/** Returns the base backups of an archive whose segments are stored, the oldest first. */
export function usableBases({ firstSegment, lastSegment, bases }: Archive): UsableBase[] {
  if (firstSegment === undefined || lastSegment === undefined) return []
  return bases
    .flatMap(({ id, startSegment, stopSegment, completeAt }): UsableBase[] => {
      if (startSegment === undefined || stopSegment === undefined || completeAt === undefined) return []
      const isStored = firstSegment <= startSegment && stopSegment <= lastSegment
      return isStored ? [{ id, startSegment, from: completeAt }] : []
    })
    .sort((a, b) => a.from.getTime() - b.from.getTime())
}

/** Returns the periods that a tenant's archives cover, the oldest first. */
export function rangesOf(archives: readonly Archive[]): Range[] {
  return archives
    .flatMap((archive): Range[] => {
      const [first] = usableBases(archive)
      const isGone = archive.state === 'removing'
      if (isGone || first === undefined || archive.latest === undefined || archive.latest < first.from) return []
      return [{ from: first.from, to: archive.latest }]
    })
    .sort((a, b) => a.from.getTime() - b.from.getTime())
}

/** The files from which a moment is recovered. */
export interface RecoverySource {
  archive: Archive
  base: UsableBase
  /** The last segment that the moment may need. */
  lastSegment: string
}

/** Returns what a moment is recovered from: the newest base backup before it. Undefined if no archive covers it. */
export function recoverySource(archives: readonly Archive[], to: Date): RecoverySource | undefined {
  const sources = archives.flatMap((archive): RecoverySource[] => {
    const { latest, lastSegment, state } = archive
    if (state === 'removing' || latest === undefined || lastSegment === undefined || to > latest) return []
    const bases = usableBases(archive)
    const base = bases.findLast(({ from }) => from <= to)
    // The second later base backup begins after the first one has ended, so its first segment is after the moment.
    const [, second] = bases.filter(({ from }) => from > to)
    return base === undefined ? [] : [{ archive, base, lastSegment: second?.startSegment ?? lastSegment }]
  })
  return sources.sort((a, b) => a.base.from.getTime() - b.base.from.getTime()).at(-1)
}

const dayMs = 86_400_000
/** The age at which an archive receives a further base backup. */
const baseMs = dayMs

/** Whether an open archive needs a base backup now. One that was interrupted does not count. */
export function needsBase({ bases, state }: Archive, now: Date): boolean {
  const isRecent = ({ completeAt, createdAt }: Base) =>
    completeAt !== undefined && now.getTime() - createdAt.getTime() < baseMs
  return state === 'open' && !bases.some(isRecent)
}

/** Returns the complete base backups that no moment of the last `days` needs. The newest usable one is always needed. */
export function expiredBases(archive: Archive, days: number, now: Date): string[] {
  const usable = usableBases(archive)
  const cut = now.getTime() - days * dayMs
  const needed = usable.findLastIndex(({ from }) => from.getTime() <= cut)
  return usable.slice(0, Math.max(needed, 0)).map(({ id }) => id)
}

/** Whether no moment of the last `days` needs an archive that has ended. */
export function isOver(archive: Archive, days: number, now: Date): boolean {
  if (archive.state !== 'ended') return false
  const [range] = rangesOf([archive])
  return range === undefined || range.to.getTime() < now.getTime() - days * dayMs
}

/** Returns the first segment that an archive's base backups need; undefined before it has one. */
export function firstNeededSegment({ bases }: Archive): string | undefined {
  return bases.flatMap(({ startSegment }) => startSegment ?? []).sort()[0]
}
