// Writes the copies of files to runtimes that tenants share.
import { createHash } from 'node:crypto'
import type { RuntimeFiles, StoredFile } from '../backups/index.ts'
import { MoveError } from './move-error.ts'

/** Gives the tenant's store in the runtimes the ID that it has at the source, if it has one. @throws MoveError */
export async function claimSameStore(
  target: Pick<RuntimeFiles, 'claimStore'>,
  storeId: string | undefined,
  signal: AbortSignal,
): Promise<void> {
  if (storeId !== undefined && (await target.claimStore(storeId, signal)) !== storeId)
    throw new MoveError('The runtimes that tenants share have another store of the tenant.')
}

/** Writes a file, and compares what was written with what was read. @throws MoveError, BackupError */
export async function writeCopy(
  file: StoredFile,
  content: AsyncIterable<Uint8Array>,
  target: Pick<RuntimeFiles, 'write'>,
  signal: AbortSignal,
): Promise<void> {
  const hash = createHash('sha256')
  const written = await target.write(file.id, hashed(content, hash), signal)
  if (written.size !== file.size || written.sha256 !== hash.digest('hex')) throw fileDiffers(file)
}

/** Returns the error for a copy of a file that differs. */
export function fileDiffers({ id }: StoredFile): MoveError {
  return new MoveError(`The content of the file ${id} differs in the copy.`)
}

async function* hashed(
  content: AsyncIterable<Uint8Array>,
  hash: ReturnType<typeof createHash>,
): AsyncGenerator<Uint8Array, undefined> {
  for await (const chunk of content) {
    hash.update(chunk)
    yield chunk
  }
}
