// Sending an object: its row, then its blob; conditions, ranges, and the headers that keep a browser from running it.
import type { FastifyReply, FastifyRequest } from 'fastify'
import { RuntimeError } from '../../errors.ts'
import type { RlsContext } from '../../tenancy/rls-context.ts'
import type { Tenant } from '../../tenancy/tenant.ts'
import type { BlobBackend, OpenBlob } from '../backend/backend.ts'
import type { BlobMemory } from './blob-memory.ts'
import { precondition, readRange, type RangeResponse } from './conditional.ts'
import { contentDisposition } from './disposition.ts'
import { partialBody, wholeBody } from './object-body.ts'
import type { StoredObject } from './object.ts'
import { findObject } from './object-store.ts'

/** Up to this a file is read at once, sent at once and remembered. */
const smallBytes = 64 * 1024

export interface DownloadDeps {
  backend: BlobBackend
  memory: BlobMemory
  /** An object without its file (specification, section 7: phantom). */
  onPhantom: (tenantId: string, objectId: string) => void
}

interface DownloadTarget {
  bucket: string
  path: string
  context: RlsContext
  /** See `contentDisposition`. */
  download: string | undefined
  /** Another caller may be refused: nobody's cache may answer them. */
  byCaller: boolean
}

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
      throw new RuntimeError(
        'PRECONDITION_FAILED',
        'the object is not the one that If-Match or If-Unmodified-Since names',
      )
    case 'not modified':
      describe(reply, object, target)
      return reply.status(304).send()
    case 'proceed':
  }
  // Ranges are of GET alone (RFC 9110, section 14.2).
  const range: RangeResponse =
    request.method === 'GET' ? readRange(request.headers, object.size, validators) : { kind: 'whole' }
  if (range.kind === 'unsatisfiable') {
    reply.header('content-range', `bytes */${object.size}`)
    throw new RuntimeError('RANGE_NOT_SATISFIABLE', `the range lies outside of the object's ${object.size} bytes`)
  }
  const body = range.kind === 'whole' ? wholeBody(object.size) : partialBody(range.parts, object)
  // Only now: an error must not carry the object's Cache-Control, by which it would be kept.
  const begin = () => {
    describe(reply, object, target)
    return reply.status(body.status).headers(body.headers).header('content-length', body.length)
  }
  if (request.method === 'HEAD') return begin().send()

  const isSmall = range.kind === 'whole' && object.size > 0 && object.size <= smallBytes
  if (isSmall) {
    const remembered = deps.memory.get(request.tenant.id, object.blobId)
    // The row is the tenant's, who may have made anything of its size.
    if (remembered?.length === object.size) return begin().send(remembered)
  }
  const { blob, object: opened } = await openObject(deps, request.tenant, target, object)
  // The object was overwritten between its row and its blob: what is sent must be one of the two, not a mixture.
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
    deps.memory.set(request.tenant.id, object.blobId, bytes)
    return begin().send(bytes)
  }
  return begin().send(body.stream(blob))
}

/**
 * An object's blob, and the object as it was then. An open blob outlives its unlinking; one that is gone was overwritten
 * since its row was read, or is a phantom: the row tells.
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

function describe(reply: FastifyReply, object: StoredObject, { download, byCaller }: DownloadTarget): void {
  reply
    .type(object.contentType)
    .header('etag', `"${object.etag}"`)
    .header('last-modified', new Date(object.updatedAt).toUTCString())
    .header('accept-ranges', 'bytes')
    .header('cache-control', object.cacheControl)
    .header('x-content-type-options', 'nosniff')
    .header('content-security-policy', "sandbox; default-src 'none'")
    .header('x-robots-tag', 'none')
  if (byCaller) reply.header('vary', 'Authorization, apikey')
  const disposition = contentDisposition(object.contentType, object.path, download)
  if (disposition !== undefined) reply.header('content-disposition', disposition)
}
