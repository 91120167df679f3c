// Sends an object: conditional requests, ranges, and headers that prevent browsers from running it.
import type { FastifyReply, FastifyRequest } from 'fastify'
import { RuntimeError } from '../../errors.ts'
import type { RlsContext } from '../../tenancy/rls-context.ts'
import type { Tenant } from '../../tenancy/tenant.ts'
import type { BlobBackend, OpenBlob } from '../backend/backend.ts'
import type { BlobCache } from './blob-cache.ts'
import { precondition, readRange, type RequestedRange } from './conditional.ts'
import { contentDisposition } from './disposition.ts'
import { partialBody, wholeBody } from './object-body.ts'
import type { StoredObject } from './object.ts'
import { findObject } from './object-store.ts'

/** Files up to this size are read and sent at once, and cached. */
const smallBytes = 64 * 1024

export interface DownloadDeps {
  backend: BlobBackend
  cache: BlobCache
  /** Reports an object without its file (specification, section 7: phantom). */
  onPhantom: (tenantId: string, objectId: string) => void
}

interface DownloadTarget {
  bucket: string
  path: string
  context: RlsContext
  /** The parameter of `contentDisposition`. */
  download: string | undefined
  /** Whether access depends on the caller, so that shared caches must not send the response to others. */
  dependsOnCaller: boolean
}

/** Sends an object. @throws RuntimeError NoSuchBucket, NoSuchKey, FILE_MISSING, PRECONDITION_FAILED, RANGE_NOT_SATISFIABLE */
export async function sendObject(
  deps: DownloadDeps,
  target: DownloadTarget,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<FastifyReply> {
  const { object } = await findObject(request.tenant, target.context, target.bucket, target.path)
  const validators = { etag: object.etag, modified: new Date(object.updatedAt) }
  switch (precondition(request.headers, validators)) {
    case 'failed':
      throw new RuntimeError('PRECONDITION_FAILED', 'The object does not match If-Match or If-Unmodified-Since.')
    case 'not modified':
      setHeaders(reply, object, target)
      return reply.status(304).send()
    case 'proceed':
  }
  // Ranges apply only to GET (RFC 9110, section 14.2).
  const range: RequestedRange =
    request.method === 'GET' ? readRange(request.headers, object.size, validators) : { kind: 'whole' }
  if (range.kind === 'unsatisfiable') {
    reply.header('content-range', `bytes */${object.size}`)
    throw new RuntimeError('RANGE_NOT_SATISFIABLE', `The range is outside of the object's ${object.size} bytes.`)
  }
  const body = range.kind === 'whole' ? wholeBody(object.size) : partialBody(range.parts, object)
  // Sets the headers only now, because caches must not store an error under the object's Cache-Control.
  const begin = () => {
    setHeaders(reply, object, target)
    return reply.status(body.status).headers(body.headers).header('content-length', body.length)
  }
  if (request.method === 'HEAD') return begin().send()

  const isSmall = range.kind === 'whole' && object.size > 0 && object.size <= smallBytes
  if (isSmall) {
    const cached = deps.cache.get(request.tenant.id, object.blobId)
    // The tenant can change the row, so its size may be wrong.
    if (cached?.length === object.size) return begin().send(cached)
  }
  const { blob, object: opened } = await openObject(deps, request.tenant, target, object)
  // If the object was overwritten after its row was read, the headers and the blob would be of different versions.
  if (opened.blobId !== object.blobId) {
    await blob.close()
    return sendObject(deps, target, request, reply)
  }
  if (body.length === 0) {
    await blob.close()
    return begin().send('')
  }
  if (isSmall) {
    const bytes = await blob.whole(object.size)
    deps.cache.set(request.tenant.id, object.blobId, bytes)
    return begin().send(bytes)
  }
  return begin().send(body.stream(blob))
}

/**
 * Opens an object's blob, and returns it with the object that it belongs to. If the blob is missing, the object was
 * overwritten after its row was read, or is a phantom; reading the row again shows which.
 * @throws RuntimeError NoSuchBucket, NoSuchKey, FILE_MISSING
 */
export async function openObject(
  deps: DownloadDeps,
  tenant: Tenant,
  { context, bucket, path }: Pick<DownloadTarget, 'context' | 'bucket' | 'path'>,
  found: StoredObject,
): Promise<{ blob: OpenBlob; object: StoredObject }> {
  for (let object = found; ;) {
    const blob = await deps.backend.open(tenant.id, object.blobId)
    if (blob !== undefined) return { blob, object }
    const { object: now } = await findObject(tenant, context, bucket, path)
    if (now.blobId === object.blobId) {
      deps.onPhantom(tenant.id, now.id)
      throw new RuntimeError('FILE_MISSING', 'Object not found: its file is missing')
    }
    object = now
  }
}

function setHeaders(reply: FastifyReply, object: StoredObject, { download, dependsOnCaller }: DownloadTarget): void {
  reply
    .type(object.contentType)
    .header('etag', `"${object.etag}"`)
    .header('last-modified', new Date(object.updatedAt).toUTCString())
    .header('accept-ranges', 'bytes')
    .header('cache-control', object.cacheControl)
    .header('x-content-type-options', 'nosniff')
    .header('content-security-policy', "sandbox; default-src 'none'")
    .header('x-robots-tag', 'none')
  if (object.contentEncoding !== null) reply.header('content-encoding', object.contentEncoding)
  if (dependsOnCaller) reply.header('vary', 'Authorization, apikey')
  const disposition = contentDisposition(object.contentType, object.path, download)
  if (disposition !== undefined) reply.header('content-disposition', disposition)
}
