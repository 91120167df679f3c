// Copies a home into another database, from the snapshot at which its replication slot begins.
import { dumpFrames, inHomeSnapshot, loadDump, readSharedState, type HomeObjects } from '../backups/index.ts'
import type { HomeMigration } from '../homes/index.ts'
import { identifier } from '../platform/identifiers.ts'
import { endConnection, openConnection } from '../platform/single-connection.ts'
import type { Pace } from '../platform/pace.ts'
import { inDatabase } from '../platform/superuser-url.ts'
import { namesOf, streamOf } from './move.ts'
import { MoveError } from './move-error.ts'
import type { Locations } from './locations.ts'

interface Copy extends Locations {
  migrations: readonly HomeMigration[]
  pace: Pace
  onError: (error: unknown) => void
  /** Receives the rows and bytes that are copied. */
  onProgress: (rows: number, bytes: number) => void
}

const slotMilliseconds = 60_000
const lineFeed = 10

/** Creates the slot, and calls `work` with its snapshot. A transaction in progress on the server makes it wait. */
export async function withSlot<T>({ source, tenantId }: Locations, work: (snapshot: string) => Promise<T>): Promise<T> {
  const client = await openConnection({
    connectionString: inDatabase(source.postgresUrl, source.database),
    application_name: 'tenantry-moves',
    query_timeout: slotMilliseconds,
    replication: 'database',
  } as Parameters<typeof openConnection>[0])
  const session = { isEnded: false }
  client.once('end', () => (session.isEnded = true))
  try {
    const slot = identifier(streamOf(tenantId, 'move').slot)
    const { rows } = await client
      .query<{ snapshot_name: string }>(`CREATE_REPLICATION_SLOT ${slot} LOGICAL pgoutput (SNAPSHOT 'export')`)
      .catch((cause: unknown) => {
        throw new MoveError(
          'No replication slot could be created: a transaction on the server has not ended, or no slot is free.',
          {
            cause,
            isTemporary: true,
          },
        )
      })
    // The snapshot exists until the session's next command.
    return await work(rows[0]?.snapshot_name ?? '')
  } catch (cause) {
    if (!session.isEnded) throw cause
    throw new MoveError('The session with the snapshot of the home has ended.', { cause, isTemporary: true })
  } finally {
    await endConnection(client).catch(() => undefined)
  }
}

/** Copies the home. Its content is not compared yet. @returns the objects of the home @throws BackupError */
export function copyHome(copy: Copy, exported: string, signal: AbortSignal): Promise<HomeObjects> {
  const { source, target, tenantId, migrations, pace, onError, onProgress } = copy
  const names = namesOf(tenantId)
  return inHomeSnapshot(
    source,
    tenantId,
    signal,
    async ({ client, header, objects }) => {
      const state = await readSharedState(client, objects)
      const home = {
        ...state,
        // Positions of sequences belong to no snapshot. The switch sets them.
        sequences: state.sequences.map((sequence) => ({ ...sequence, last_value: null })),
      }
      await loadDump(
        {
          location: target,
          homeId: tenantId,
          schema: tenantId,
          passwords: undefined,
          manifest: { tenant_id: tenantId, home, database_format: 'frames-2' },
          frames: measured(dumpFrames(client, header, objects, { pace }), onProgress),
          migrations,
          onError,
          continuesCounters: true,
          reader: names.target,
        },
        signal,
      )
      return objects
    },
    { reader: names.source, exported },
  )
}

type Frames = ReturnType<typeof dumpFrames>

async function* measured(frames: Frames, onProgress: (rows: number, bytes: number) => void): Frames {
  let rows = 0
  let bytes = 0
  for await (const frame of frames) {
    if (frame.type === 'D') {
      rows += lineFeedsIn(frame.content)
      bytes += frame.content.length
      onProgress(rows, bytes)
    }
    yield frame
  }
}

/** Counts the ends of rows. COPY writes no other line feed. */
function lineFeedsIn(content: Buffer): number {
  let count = 0
  for (let at = content.indexOf(lineFeed); at >= 0; at = content.indexOf(lineFeed, at + 1)) count++
  return count
}
