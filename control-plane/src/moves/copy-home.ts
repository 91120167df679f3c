// Copies a home into another database, from the snapshot at which its replication slot begins.
import type pg from 'pg'
import {
  asReplicator,
  dumpFrames,
  inHomeSnapshot,
  loadDump,
  readSharedState,
  type HomeObjects,
} from '../backups/index.ts'
import type { HomeMigration } from '../homes/index.ts'
import { identifier } from '../platform/identifiers.ts'
import type { Pace } from '../platform/pace.ts'
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
export async function withSlot<T>(
  { source, tenantId }: Locations,
  signal: AbortSignal,
  work: (snapshot: string) => Promise<T>,
): Promise<T> {
  const session = { isEnded: false }
  try {
    return await asReplicator(source, signal, async (client) => {
      client.once('end', () => (session.isEnded = true))
      // The snapshot exists until the session's next command.
      return work(await createSlot(client, streamOf(tenantId, 'move').slot))
    })
  } catch (cause) {
    signal.throwIfAborted()
    if (!session.isEnded) throw cause
    throw new MoveError('The session with the snapshot of the home has ended.', { cause, isTemporary: true })
  }
}

/** Creates a slot. @returns the name of the snapshot at which it begins @throws MoveError */
async function createSlot(client: pg.Client, slot: string): Promise<string> {
  const create = {
    text: `CREATE_REPLICATION_SLOT ${identifier(slot)} LOGICAL pgoutput (SNAPSHOT 'export')`,
    query_timeout: slotMilliseconds,
  }
  try {
    const { rows } = await client.query<{ snapshot_name: string }>(create)
    return rows[0]?.snapshot_name ?? ''
  } catch (cause) {
    throw new MoveError(
      'No replication slot could be created: a transaction on the server has not ended, or no slot is free.',
      { cause, isTemporary: true },
    )
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
