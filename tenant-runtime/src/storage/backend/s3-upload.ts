// Uploads a blob to an S3 server.
import { createHash } from 'node:crypto'
import type { Readable } from 'node:stream'
import { S3Upload, type S3Connection } from '@tenantry/contract/s3'
import { RuntimeError } from '../../errors.ts'
import type { StoredBlob } from './backend.ts'

/** Uploads a blob. @throws RuntimeError FILE_TOO_LARGE past `limit` bytes, STORAGE_FULL, STORAGE_UNAVAILABLE; the source's error */
export async function uploadBlob(
  connection: S3Connection,
  key: string,
  source: Readable,
  limit: number,
): Promise<StoredBlob> {
  const hash = createHash('sha256')
  const parts = new S3Upload(connection, key)
  let size = 0
  try {
    for await (const chunk of source as AsyncIterable<Buffer>) {
      size += chunk.length
      if (size > limit) throw new RuntimeError('FILE_TOO_LARGE', 'The object exceeded the maximum allowed size')
      hash.update(chunk)
      await parts.write(chunk)
    }
    await parts.end()
  } catch (error) {
    await parts.abort()
    throw error
  }
  return { size, sha256: hash.digest('hex') }
}
