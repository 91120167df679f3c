// What earlier starts of the gateway counted and the control plane may not know: read from their journals, and removed
// once it knows.
import { readdir, readFile, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import { isMissingFile, type Counter } from '@tenantry/contract'
import { readSegment, type Origin } from './segment.ts'

/** The counts of one earlier start. */
export interface Replay extends Origin {
  counters: Counter[]
  files: string[]
}

const uuid = '[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}'
const fileName = new RegExp(`^(${uuid})-[0-9]{1,10}\\.journal$`)

export function segmentFile(directory: string, boot: string, segment: number): string {
  return join(directory, `${boot}-${segment}.journal`)
}

/**
 * @param source of segments that no longer say theirs
 * @param onError told of every file that is damaged or can't be read; what can be read counts
 */
export async function readJournals(
  directory: string,
  source: string,
  onError: (error: Error) => void,
): Promise<Replay[]> {
  const replays = new Map<string, Origin & { files: string[]; known: Map<string, Counter> }>()
  for (const name of await namesIn(directory)) {
    const boot = fileName.exec(name)?.[1]
    if (boot === undefined) continue
    const file = join(directory, name)
    let bytes: Buffer
    try {
      bytes = await readFile(file)
    } catch (cause) {
      onError(new Error(`the journal ${name} can't be read`, { cause }))
      continue
    }
    const { origin, counters, torn, damaged } = readSegment(bytes)
    if (damaged > 0)
      onError(new Error(`the journal ${name} is damaged: ${damaged} of ${bytes.length} bytes say nothing`))
    if (torn > 0) onError(new Error(`the journal ${name} ends in a write that was cut: ${torn} bytes`))
    const replay = replays.get(boot) ?? {
      source: origin?.source ?? source,
      boot,
      files: [],
      known: new Map<string, Counter>(),
    }
    replays.set(boot, replay)
    replay.files.push(file)
    merge(replay.known, counters)
  }
  return [...replays.values()].map(({ known, ...replay }) => ({ ...replay, counters: [...known.values()] }))
}

export async function removeReplay({ files }: Replay): Promise<void> {
  await Promise.all(files.map((file) => unlink(file)))
}

async function namesIn(directory: string): Promise<string[]> {
  try {
    return await readdir(directory)
  } catch (cause) {
    if (isMissingFile(cause)) return []
    throw cause
  }
}

/** The greatest value of each counter, over all segments. */
function merge(known: Map<string, Counter>, counters: readonly Counter[]): void {
  for (const counter of counters) {
    const { value, ...key } = counter
    const name = JSON.stringify(key)
    const other = known.get(name)
    if (other === undefined) known.set(name, counter)
    else other.value = Math.max(other.value, value)
  }
}
