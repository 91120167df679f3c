// Reads the counts of earlier starts, which the control plane may not have, from their journals, and removes these once it
// has them.
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
 * Reads all journals of the directory.
 * @param source the source of segments that do not state theirs
 * @param onError receives an error for every file that is damaged or cannot be read; everything readable counts
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
      onError(new Error(`The journal ${name} cannot be read.`, { cause }))
      continue
    }
    const { origin, counters, torn, damaged } = readSegment(bytes)
    if (damaged > 0)
      onError(new Error(`The journal ${name} is damaged: ${damaged} of ${bytes.length} bytes are invalid.`))
    if (torn > 0) onError(new Error(`The journal ${name} ends in an incomplete write of ${torn} bytes.`))
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

/** Merges counters into the greatest value of each over all segments. */
function merge(known: Map<string, Counter>, counters: readonly Counter[]): void {
  for (const counter of counters) {
    const { value, ...key } = counter
    const name = JSON.stringify(key)
    const other = known.get(name)
    if (other === undefined) known.set(name, counter)
    else other.value = Math.max(other.value, value)
  }
}
