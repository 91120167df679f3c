// The index of a backup's blobs, a line for each in the order of their ids: `<blob id> <bytes> <sha256>`. It is always
// streamed, because a tenant may have millions.
import { createHash } from 'node:crypto'
import { extract, type Extract } from 'tar-stream'
import { BackupError } from './backup-error.ts'
import { linesOf } from './lines.ts'
import type { BackupFiles } from './parts.ts'

export interface BlobEntry {
  id: string
  size: number
  sha256: string
}

export function indexLine({ id, size, sha256 }: BlobEntry): string {
  return `${id} ${size} ${sha256}\n`
}

/**
 * Reads a line of the index.
 * @throws BackupError DAMAGED
 */
export function readIndexLine(line: string): BlobEntry {
  const [, id, size, sha256] = /^([0-9a-f-]{36}) (\d+) ([0-9a-f]{64})$/.exec(line) ?? []
  if (id === undefined || size === undefined || sha256 === undefined)
    throw new BackupError('DAMAGED', "The index of the backup's files has an unknown form.")
  return { id, size: Number(size), sha256 }
}

/** Yields the entries of a backup's index. @throws BackupError DAMAGED */
export async function* wantedBlobs(files: Pick<BackupFiles, 'read'>): AsyncGenerator<BlobEntry, undefined> {
  for await (const line of linesOf(files.read('index'))) yield readIndexLine(line)
}

/**
 * Yields an archive unchanged and reports each file in it once all of the file has passed. The chunks are copies, which the
 * caller may free.
 */
export async function* watchedArchive(
  archive: AsyncIterable<Uint8Array>,
  seen: (blob: BlobEntry) => Promise<void>,
): AsyncGenerator<Uint8Array, undefined> {
  const reader = extract()
  const reading = (async () => {
    for await (const entry of reader) {
      const hash = createHash('sha256')
      let size = 0
      for await (const chunk of entry as AsyncIterable<Buffer>) {
        hash.update(chunk)
        size += chunk.length
      }
      if (entry.header.type === 'file')
        await seen({ id: entry.header.name.split('/').at(-1) ?? '', size, sha256: hash.digest('hex') })
    }
  })()
  // The error is reported where `reading` is awaited.
  reading.catch((cause: unknown) => reader.destroy(cause instanceof Error ? cause : null))
  reader.on('error', () => undefined)
  try {
    for await (const chunk of archive) {
      if (!reader.write(chunk)) await Promise.race([drained(reader), reading])
      yield Buffer.from(chunk)
    }
    reader.end(undefined)
    await reading
  } finally {
    reader.destroy()
  }
}

function drained(reader: Extract): Promise<undefined> {
  return new Promise((resolve) => {
    reader.once('drain', () => resolve(undefined))
  })
}

function unexpected(id: string): BackupError {
  return new BackupError('MISMATCH', `The restored home has a file ${id} that is not in the backup.`)
}

/**
 * Compares two lists of blobs, both in the order of their ids.
 * @throws BackupError MISMATCH that names the first difference
 */
export async function compareBlobs(
  wanted: AsyncIterable<BlobEntry>,
  found: AsyncIterable<Pick<BlobEntry, 'id' | 'sha256'>>,
): Promise<void> {
  const others = found[Symbol.asyncIterator]()
  try {
    for await (const blob of wanted) {
      const next = await others.next()
      if (next.done === true || next.value.id > blob.id)
        throw new BackupError('MISMATCH', `The file ${blob.id} is missing.`)
      if (next.value.id < blob.id) throw unexpected(next.value.id)
      if (next.value.sha256 !== blob.sha256)
        throw new BackupError('MISMATCH', `The content of the file ${blob.id} differs.`)
    }
    const more = await others.next()
    if (more.done !== true) throw unexpected(more.value.id)
  } finally {
    await others.return?.()
  }
}
