// The commands that the control plane runs in a tenant's Postgres container for its archive: they begin the spool of
// finished segments, read and empty it, and take a base backup.
import { pipeline } from 'node:stream/promises'
import { Readable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import { extract } from 'tar-stream'
import type { Engine } from '../../engines/index.ts'
import { archiveSpool, compressCommand } from '../../stacks/index.ts'
import { BackupError } from '../backup-error.ts'
import type { Observation } from './progress.ts'
import { isHistory, isSegment, toPosition } from './wal.ts'

/** The Postgres of a tenant. */
export interface ArchivedServer {
  engine: Engine
  stack: string
  /** The service of the Postgres; of a cluster, its present primary. */
  service: string
  /** The services of a cluster's replicas, whose spools have the newest segments, too. */
  replicas: readonly string[]
}

const superuser = 'psql -X -q -A -t -v ON_ERROR_STOP=1 -U postgres -d postgres'
const bash = (script: string, ...parameters: readonly string[]) => [
  'bash',
  '-euo',
  'pipefail',
  '-c',
  script,
  'bash',
  ...parameters,
]

const beginScript = `
umask 077
[[ $(${superuser} -c 'show archive_mode') != off ]] || exit 44
rm -rf ${archiveSpool}
mkdir ${archiveSpool}
printf %s "$1" > ${archiveSpool}/archive
mkdir ${archiveSpool}/on
sync ${archiveSpool}/archive ${archiveSpool} ${archiveSpool}/..
`

/**
 * Begins an empty spool for an archive. Every segment that is finished from now on is put into it.
 * @returns false while the server does not archive, because it still has to restart
 */
export async function beginSpool(
  { engine, stack, service }: ArchivedServer,
  archiveId: string,
  signal: AbortSignal,
): Promise<boolean> {
  const { code, stderr } = await engine.exec(stack, service, bash(beginScript, archiveId), { signal })
  if (code === 44) return false
  if (code !== 0) throw new Error(`The spool of an archive could not be created: ${stderr.slice(-2000)}`)
  return true
}

/** Maximum number of files that one read returns. */
export const maxFiles = 16

// Without the archive's own spool the output is an empty tar archive. Postgres is observed before the segments are listed.
const readScript = `
umask 077
if [[ $3 != own ]]; then
  mkdir -p ${archiveSpool}/on
  printf %s "$1" > ${archiveSpool}/archive
fi
if [[ ! -d ${archiveSpool}/on || $(cat ${archiveSpool}/archive 2> /dev/null) != "$1" ]]; then tar --create --files-from=/dev/null; exit; fi
cd ${archiveSpool}
for file in on/*.zst on/*.gz; do
  name=\${file#on/}
  if [[ -e $file && ! \${name%.*} > $2 ]]; then rm -f "$file"; fi
done
rm -f state
if [[ $3 != replica ]]; then
  ${superuser} -F ' ' -c "select extract(epoch from transaction_timestamp()), pg_current_wal_insert_lsn(),
    pg_snapshot_xmin(s), pg_snapshot_xmax(s), left(pg_walfile_name(pg_current_wal_insert_lsn()), 8)
    from pg_current_snapshot() s" > state
fi
{ find state 2> /dev/null; find on -name '*.zst' -o -name '*.gz' | LC_ALL=C sort | head -n ${maxFiles} || true; } > list
tar --create --verbatim-files-from --files-from=list
`

/** A segment or the history of a timeline in the spool, compressed with `zstd`, or `gzip` by an earlier release. */
export interface SpooledFile {
  name: string
  content: Buffer
}

/**
 * Way in which a spool is read. `own`: only if it was begun for the archive. `primary`: also if the member of a cluster was a
 * replica until now. `replica`: likewise, and without an observation, because only a primary knows what was committed.
 */
export type SpoolRole = 'own' | 'primary' | 'replica'

/**
 * Removes the files up to `storedUntil` from the spool, and yields an observation of Postgres and then the oldest files.
 * It yields nothing if the spool is not of this archive.
 */
export async function* readSpool(
  { engine, stack, service }: Pick<ArchivedServer, 'engine' | 'stack' | 'service'>,
  { archiveId, storedUntil, role }: { archiveId: string; storedUntil: string | undefined; role: SpoolRole },
  signal: AbortSignal,
): AsyncGenerator<Observation | SpooledFile, undefined> {
  const output = engine.execStream(stack, service, bash(readScript, archiveId, storedUntil ?? '', role), { signal })
  const reader = extract()
  const feeding = pipeline(Readable.from(output, { objectMode: false }), reader)
  // The error is reported where `feeding` is awaited, or by the loop.
  feeding.catch(() => undefined)
  for await (const entry of reader) {
    const content = await buffer(entry as AsyncIterable<Buffer>)
    const name = entry.header.name.replace(/^on\//, '').replace(/\.(zst|gz)$/, '')
    if (entry.header.name === 'state') yield readObservation(content.toString())
    else if (isSegment(name) || isHistory(name)) yield { name, content }
  }
  await feeding
}

/** A commit record can be written shortly after the time that it contains. */
const marginMs = 1_000

/** Reads the line that the spool's script prints about Postgres. */
export function readObservation(line: string): Observation {
  const [seconds = '', position = '', oldest, next, timeline = ''] = line.trim().split(' ')
  return {
    at: new Date(Math.floor(Number(seconds) * 1000) - marginMs),
    position: toPosition(position),
    timeline: Number.parseInt(timeline, 16),
    idleAt: oldest === next ? next : undefined,
  }
}

// Its end waits until Postgres has put all segments of the base backup into the spool.
const baseScript = `
pg_basebackup --username=postgres --no-password --pgdata=- --format=tar --wal-method=none --checkpoint=fast \\
  --no-manifest --label="$1" | ${compressCommand}
`

/** Yields a compressed tar archive of the data directory, which is consistent only with the WAL of the same time. */
export function baseBackup(
  { engine, stack, service }: ArchivedServer,
  baseId: string,
  signal: AbortSignal,
): AsyncIterable<Uint8Array> {
  return engine.execStream(stack, service, bash(baseScript, baseId), { signal })
}

// Postgres writes this file at the end of a base backup, and removes it during a later one.
const boundsScript = `
${superuser} -c 'select extract(epoch from clock_timestamp())'
grep --files-with-matches "^LABEL: $1$" "$PGDATA"/pg_wal/*.backup | xargs cat
`

/** The segments in which a base backup begins and ends, and a time after its end. */
export interface BaseBounds {
  startSegment: string
  stopSegment: string
  completeAt: Date
}

/** Returns the bounds of a base backup that was just taken. */
export async function baseBounds(
  { engine, stack, service }: ArchivedServer,
  baseId: string,
  signal: AbortSignal,
): Promise<BaseBounds> {
  const { code, stdout, stderr } = await engine.exec(stack, service, bash(boundsScript, baseId), { signal })
  if (code !== 0) throw new Error(`The bounds of a base backup could not be read: ${stderr.slice(-2000)}`)
  return readBounds(stdout)
}

/** Reads a time in seconds, and the history file of a base backup. */
export function readBounds(text: string): BaseBounds {
  const [, seconds] = /^(\d+\.?\d*)\n/.exec(text) ?? []
  const [, startSegment] = /^START WAL LOCATION: \S+ \(file ([0-9A-F]{24})\)$/m.exec(text) ?? []
  const [, stopSegment] = /^STOP WAL LOCATION: \S+ \(file ([0-9A-F]{24})\)$/m.exec(text) ?? []
  if (seconds === undefined || startSegment === undefined || stopSegment === undefined)
    throw new BackupError('FAILED', 'The base backup did not report its start and its end.')
  return { startSegment, stopSegment, completeAt: new Date(Math.ceil(Number(seconds) * 1000) + marginMs) }
}
