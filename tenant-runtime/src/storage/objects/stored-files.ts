// Files for other modules of the runtime, without HTTP: the same rules, quota, events and durability, in the context of the
// caller.
import { Readable } from 'node:stream'
import { RuntimeError } from '../../errors.ts'
import type { RlsContext } from '../../tenancy/rls-context.ts'
import type { Tenant } from '../../tenancy/tenant.ts'
import { findBucket } from '../buckets/bucket-store.ts'
import { atCommit } from '../failpoints.ts'
import { checkNewPath, checkPath } from '../object-path.ts'
import { openObject, type DownloadDeps } from './download.ts'
import { presentUploaded } from './object.ts'
import { findObject, removeObject } from './object-store.ts'
import { cacheControlOf, mediaType } from './upload-body.ts'
import { Upload, type UploadDeps } from './upload.ts'

/** Reads, writes and removes files. A `target` is `bucket/path/in/it`, without the encoding of URLs. */
export class StoredFiles {
  readonly #deps: DownloadDeps & UploadDeps

  constructor(deps: DownloadDeps & UploadDeps) {
    this.#deps = deps
  }

  /** Reads a file. @throws RuntimeError INVALID_PATH, NoSuchBucket, NoSuchKey, FILE_MISSING; ANSWER_TOO_LARGE beyond `maxBytes` */
  async get(tenant: Tenant, context: RlsContext, target: string, maxBytes: number): Promise<Buffer> {
    const { bucket, path } = split(target)
    const { object: found } = await findObject(tenant, context, bucket, path)
    const { blob, object } = await openObject(this.#deps, tenant, { context, bucket, path }, found)
    if (object.size > 0 && object.size <= maxBytes) return blob.whole(object.size)
    await blob.close()
    if (object.size === 0) return Buffer.alloc(0)
    throw new RuntimeError(
      'ANSWER_TOO_LARGE',
      `The object has ${object.size} bytes. At most ${maxBytes} can be read at once.`,
    )
  }

  /** Writes a file, or overwrites it. @throws RuntimeError NoSuchBucket, INVALID_PATH, BAD_REQUEST for the type; those of `Upload` */
  async put(tenant: Tenant, context: RlsContext, target: string, contentType: string, bytes: Buffer) {
    const { bucket: key, path } = split(target)
    const bucket = await findBucket(tenant, context, key)
    const upload = await Upload.begin(this.#deps, {
      tenant,
      context,
      bucket,
      path: checkNewPath(path, this.#deps.limits.pathBytes),
      contentType: mediaType(contentType),
      overwrite: true,
      declaredSize: bytes.length,
      maxBytes: undefined,
    })
    await upload.write(Readable.from(bytes.length === 0 ? [] : [bytes], { objectMode: false }))
    return presentUploaded(
      await upload.commit({ cacheControl: cacheControlOf(undefined), contentEncoding: null, metadata: {} }),
      bucket.name,
    )
  }

  /** Removes a file. @throws RuntimeError UNAUTHORIZED, ACCESS_DENIED, NoSuchBucket, NoSuchKey, INVALID_PATH */
  async remove(tenant: Tenant, context: RlsContext, target: string): Promise<void> {
    if (context.role === 'anon') throw new RuntimeError('UNAUTHORIZED', 'Deleting a file requires a signed-in user.')
    const { bucket, path } = split(target)
    const found = await findObject(tenant, context, bucket, path)
    await atCommit(this.#deps.failpoint, 'delete', () => removeObject(tenant, context, found))
    this.#deps.collector.wake(tenant)
  }
}

function split(target: string): { bucket: string; path: string } {
  const slash = target.indexOf('/')
  if (slash <= 0) throw new RuntimeError('INVALID_PATH', 'The name of a file must be its bucket, a slash and its path.')
  return { bucket: target.slice(0, slash), path: checkPath(target.slice(slash + 1)) }
}
