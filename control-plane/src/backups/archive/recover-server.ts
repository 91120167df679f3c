// Recovers a Postgres to a moment, in a scratch stack without a network: it restores a base backup, replays the WAL until
// that moment, and restarts the stack on the result.
import { buffer } from 'node:stream/consumers'
import { pack } from 'tar-stream'
import type { Engine } from '../../engines/index.ts'
import { BackupError } from '../backup-error.ts'
import type { Service, Stack } from '../../stacks/index.ts'
import { untilReady } from '../scratch-home.ts'
import { scratchStack, type ScratchParts } from '../scratch-stack.ts'
import type { RecoverySource } from './archive.ts'
import type { ArchiveFiles } from './archive-files.ts'
import { baseFile, fileContext } from './file-names.ts'
import { logFiles } from './log-files.ts'
import { continuesLog, type TimelineHistory, unpackHistory } from './timelines.ts'
import { isHistory, timelineOf } from './wal.ts'

/** The input of a recovery. */
export interface RecoverServer {
  engine: Engine
  /** The scratch stack. Nothing of an earlier attempt remains. */
  stack: string
  parts: ScratchParts
  source: RecoverySource
  /** The archive's key. */
  key: Uint8Array
  to: Date
  files: ArchiveFiles
  step: (name: string) => Promise<void>
}

const volume = '/var/lib/postgresql'
const data = `${volume}/recovered`
const segments = `${volume}/segments`

/**
 * Recovers the server. It runs when this returns.
 * @throws BackupError DAMAGED, INCOMPLETE, FAILED
 */
export async function recoverServer(options: RecoverServer, signal: AbortSignal): Promise<void> {
  const { engine, stack, parts, source, key, to, files, step } = options
  const { archive, base, lastSegment } = source
  const scratch = shortStops(scratchStack(stack, { ...parts, hasFiles: false }))
  const run = async (
    what: string,
    script: string,
    parameters: readonly string[],
    input?: AsyncIterable<Uint8Array>,
  ) => {
    const command = ['bash', '-euo', 'pipefail', '-c', script, 'bash', ...parameters]
    const result = await engine.exec(stack, 'postgres', command, { signal, ...(input === undefined ? {} : { input }) })
    if (result.code !== 0) throw new Error(`${what} exited with code ${result.code}: ${result.stderr.slice(-2000)}`)
  }
  const read = (name: string) => files.read(archive.id, name, { key, context: fileContext(archive.id, name) }, signal)
  await engine.remove(stack, signal)
  await engine.converge(scratch, signal)
  await awaitServer(engine, stack, signal)
  await step('base backup')
  await run('The restore of a base backup', extractBase, [], read(baseFile(base.id)))
  await step('log')
  const log = await logFiles(archive.id, base.startSegment, lastSegment, files)
  await run('The copy of segments', extractSegments, [], archived(completeLog(log, read)))
  await step('recovery')
  await run('The recovery', recover, [targetTime(to), targetTimeline(base.startSegment, lastSegment)])
  await engine.converge({ ...scratch, services: scratch.services.map(restarted) }, signal)
  await awaitServer(engine, stack, signal)
}

/** Returns a time for a setting of Postgres, which knows no abbreviations of time zones when it reads its options. */
function targetTime(to: Date): string {
  return to.toISOString().replace('T', ' ').replace('Z', '+00')
}

/**
 * Returns the timeline that the log ends on. Postgres searches for the latest one only as far as it finds each history, and a
 * timeline that finished no segment has none in the archive.
 */
function targetTimeline(first: string, last: string): string {
  return timelineOf(first) === timelineOf(last) ? 'current' : String(timelineOf(last))
}

function shortStops(stack: Stack): Stack {
  return { ...stack, services: stack.services.map((service) => ({ ...service, stopSeconds: 1 })) }
}

/** Returns the service with another number of restarts, so that its container is replaced. The old one never ends by itself. */
function restarted(service: Service): Service {
  return { ...service, environment: { ...service.environment, TENANTRY_RESTARTS: '1' } }
}

async function awaitServer(engine: Engine, stack: string, signal: AbortSignal): Promise<void> {
  const { code } = await engine.exec(stack, 'postgres', untilReady, { signal })
  if (code !== 0) throw new BackupError('FAILED', 'The Postgres of the scratch home does not become ready.')
}

/** A file of the log, compressed. */
interface LogFile {
  name: string
  content: Buffer
}

/** Reads the files of a log, and checks that none is missing between them. @throws BackupError INCOMPLETE */
async function* completeLog(
  names: Iterable<string>,
  read: (name: string) => AsyncIterable<Uint8Array>,
): AsyncGenerator<LogFile, undefined> {
  let last: string | undefined
  const histories = new Map<number, TimelineHistory>()
  for (const name of names) {
    const content = await buffer(read(name))
    if (isHistory(name)) histories.set(timelineOf(name), unpackHistory(content))
    else if (last !== undefined && !continuesLog(last, name, histories.get(timelineOf(name))))
      throw new BackupError('INCOMPLETE', `The archive lacks the segment after ${last}.`)
    else last = name
    yield { name, content }
  }
}

/** Yields a tar archive of the files, one in memory at a time. */
async function* archived(files: AsyncIterable<LogFile>): AsyncGenerator<Uint8Array, undefined> {
  const tar = pack()
  const filling = (async () => {
    for await (const { name, content } of files) {
      const entry = tar.entry({ name, size: content.length })
      await new Promise((resolve, reject) => {
        entry.on('finish', () => resolve(undefined))
        entry.on('error', reject)
        entry.end(content)
      })
    }
    tar.finalize()
  })()
  filling.catch((cause: unknown) => tar.destroy(cause instanceof Error ? cause : new Error('The pack failed.')))
  yield* tar as AsyncIterable<Uint8Array>
  await filling
}

// The settings of a cluster's member name its other members, and would wait for them. `zstd` also decompresses what an earlier
// release has compressed with `gzip`.
const extractBase = `
umask 077
mkdir ${data}
zstd -dcq | tar --extract --directory ${data}
cp "$PGDATA/postgresql.conf" ${data}/postgresql.conf
`

const extractSegments = `
umask 077
mkdir ${segments}
tar --extract --directory ${segments}
`

// Postgres ends with an error if no commit follows the moment, because it then finds no end of the recovery. Everything in
// the archive is older, and the second start replays all of it. pg_ctl does not wait for the end of a recovery.
const recover = `
umask 077
options="-c listen_addresses= -c unix_socket_directories=/tmp -c port=5433 -c hba_file=/usr/share/tenantry/pg_hba.conf"
options="$options -c archive_mode=off -c hot_standby=off -c shared_buffers=64MB"
restore="zstd -dcq ${segments}/%f > %p"
timeline=$2
start() { # the moment, or nothing
  local target="-c recovery_target_timeline=$timeline -c recovery_target_action=promote -c recovery_target_time='$1'"
  pg_ctl --pgdata=${data} --wait --timeout=3600 --log=${volume}/recovery.log start \\
    --options="$options -c restore_command='$restore' $target" || return 1
  until psql -X -q -h /tmp -p 5433 -U postgres -d postgres -c 'select 1' > /dev/null 2>&1; do
    pg_ctl --pgdata=${data} status > /dev/null || return 1
    echo waiting
    sleep 0.2
  done
}
touch ${data}/recovery.signal
if ! start "$1"; then
  if ! grep -q 'recovery ended before configured recovery target was reached' ${volume}/recovery.log; then
    tail -n 30 ${volume}/recovery.log >&2
    exit 1
  fi
  start '' || { tail -n 30 ${volume}/recovery.log >&2; exit 1; }
fi
pg_ctl --pgdata=${data} --wait --mode=fast stop
rm -rf ${segments}
# The container's own server would overwrite the control file in its path, also when it ends. It is killed while it is stopped.
server=$(head -n 1 "$PGDATA/postmaster.pid")
kill -STOP "$server"
kill -STOP $(cat "/proc/$server/task/$server/children")
mv ${volume}/17/data ${volume}/17/template
mv ${data} ${volume}/17/data
sync ${volume}/17 ${volume}
`
