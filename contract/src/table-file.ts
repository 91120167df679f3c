// The copy of a watched table on disk: lines of JSON, each an entry or the removal of one. Changes of a large table are
// appended, and a later line replaces earlier ones, so that a change costs the same however many entries there are.
import { mkdir, open } from 'node:fs/promises'
import { dirname } from 'node:path'
import { isMissingFile } from './missing-file.ts'
import { replaceFile } from './replace-file.ts'

interface TableCopy {
  /** The entries by their IDs. They may have any form. */
  entries: Map<string, object>
  lines: number
  /** Number of lines that are not entries: the last one of a process that was killed, or damage. */
  damaged: number
}

/** Number of lines below which the whole file is replaced with each change. */
const minAppendedTo = 1_000

/** Reads a copy. A missing file has no lines. @param key the member of an entry that identifies it */
export async function readTableFile(file: string, key: string): Promise<TableCopy> {
  const copy: TableCopy = { entries: new Map(), lines: 0, damaged: 0 }
  const handle = await open(file).catch((cause: unknown) => {
    if (isMissingFile(cause)) return undefined
    throw cause
  })
  if (handle === undefined) return copy
  for await (const text of handle.readLines({ encoding: 'utf8' })) {
    if (text === '') continue
    copy.lines++
    const line = objectOf(text)
    const id = line?.[key]
    if (typeof line?.['removed'] === 'string') copy.entries.delete(line['removed'])
    else if (line !== undefined && typeof id === 'string') copy.entries.set(id, line)
    else copy.damaged++
  }
  return copy
}

/** Writes the copy of a table. */
export class TableFile<Entry> {
  readonly #file: string
  readonly #entries: ReadonlyMap<string, Entry>
  /** Number of lines of the file; undefined if the file may not have all entries. */
  #lines: number | undefined

  /** @param entries the entries of the table, which may change while they are saved */
  constructor(file: string, entries: ReadonlyMap<string, Entry>) {
    this.#file = file
    this.#entries = entries
  }

  /** Notes that the file was read and contains all entries. */
  wasRead(lines: number): void {
    this.#lines = lines
  }

  /** Saves entries that have changed or were removed. @param changed their IDs */
  async save(changed: readonly string[]): Promise<void> {
    const lines = this.#lines
    // The file may have twice as many lines as there are entries.
    const isAppended = lines !== undefined && lines >= minAppendedTo && lines + changed.length <= 2 * this.#entries.size
    // After a failure, the file may have a part of the lines.
    this.#lines = undefined
    if (isAppended) {
      await this.#append(changed.map((id) => lineOf(id, this.#entries.get(id))))
      this.#lines = lines + changed.length
    } else {
      await mkdir(dirname(this.#file), { recursive: true })
      this.#lines = await this.#replace()
    }
  }

  /** Appends lines. The last line of a process that was killed has no end, so each line begins with one. */
  async #append(lines: readonly string[]): Promise<void> {
    const handle = await open(this.#file, 'a', 0o600)
    try {
      await handle.appendFile(lines.map((line) => `\n${line}`).join(''))
      await handle.datasync()
    } finally {
      await handle.close()
    }
  }

  /** Replaces the file. Entries that change meanwhile are saved next. @returns the number of its lines */
  async #replace(): Promise<number> {
    let count = 0
    const entries = this.#entries
    const batches = function* () {
      let batch: string[] = []
      for (const entry of entries.values()) {
        batch.push(JSON.stringify(entry))
        count++
        if (batch.length < minAppendedTo) continue
        yield `${batch.join('\n')}\n`
        batch = []
      }
      yield batch.join('\n')
    }
    await replaceFile(this.#file, batches())
    return count
  }
}

function lineOf(id: string, entry: unknown): string {
  return JSON.stringify(entry ?? { removed: id })
}

/** Returns the object that is a line; undefined for another text. */
function objectOf(text: string): Record<string, unknown> | undefined {
  try {
    const line: unknown = JSON.parse(text)
    return typeof line === 'object' && line !== null ? (line as Record<string, unknown>) : undefined
  } catch {
    return undefined
  }
}
