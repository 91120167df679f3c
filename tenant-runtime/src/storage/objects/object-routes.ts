// HTTP routes of objects (specification, section 4.2): download, information, listing, move, copy.
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { Type, type Static } from 'typebox'
import { RuntimeError } from '../../errors.ts'
import type { RlsContext } from '../../tenancy/rls-context.ts'
import { rejectVersion, rejectVersions, VersionOptions } from '../absent-features.ts'
import { findBucket } from '../buckets/bucket-store.ts'
import { atCommit } from '../failpoints.ts'
import { checkNewPath, rawRest, splitTarget } from '../object-path.ts'
import { readToken, requireBucket, validSecrets } from '../signing/token.ts'
import { openObject, sendObject, type DownloadDeps } from './download.ts'
import { FolderPositions } from './folder-positions.ts'
import { listByDate } from './list-by-date.ts'
import { listFolder } from './list-folder.ts'
import { listKeys } from './list-keys.ts'
import { presentInfo, presentListed, type StoredObject } from './object.ts'
import { findObject, moveObject } from './object-store.ts'
import { Upload, type UploadDeps } from './upload.ts'
import { cacheControlOf, contentEncodingOf, decodeHeader, mediaType, metadataOf } from './upload-body.ts'

const prefix = '/storage/v1/object/'

const ListBody = Type.Object({
  ...VersionOptions,
  prefix: Type.Optional(Type.String({ maxLength: 1024 })),
  limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 1000 })),
  offset: Type.Optional(Type.Integer({ minimum: 0 })),
  search: Type.Optional(Type.String({ maxLength: 1024 })),
  sortBy: Type.Optional(
    Type.Object({
      column: Type.Optional(Type.Enum(['name', 'created_at', 'updated_at', 'last_accessed_at'])),
      order: Type.Optional(Type.Enum(['asc', 'desc'])),
    }),
  ),
})

const KeysBody = Type.Object({
  ...VersionOptions,
  prefix: Type.Optional(Type.String({ maxLength: 1024 })),
  limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 1000 })),
  cursor: Type.Optional(Type.String({ maxLength: 2048 })),
  with_delimiter: Type.Optional(Type.Boolean()),
  sortBy: Type.Optional(
    Type.Object({
      column: Type.Optional(Type.Enum(['name', 'created_at', 'updated_at'])),
      order: Type.Optional(Type.Enum(['asc', 'desc'])),
    }),
  ),
})

const MoveBody = Type.Object({
  bucketId: Type.String(),
  sourceKey: Type.String(),
  destinationKey: Type.String(),
  destinationBucket: Type.Optional(Type.String()),
  sourceVersionId: Type.Optional(Type.String()),
  copyMetadata: Type.Optional(Type.Boolean()),
  /** The copy's metadata if `copyMetadata` is false. */
  metadata: Type.Optional(
    Type.Object({
      cacheControl: Type.Optional(Type.String()),
      contentEncoding: Type.Optional(Type.String()),
      mimetype: Type.Optional(Type.String()),
    }),
  ),
})
type MoveBody = Static<typeof MoveBody>

const ReadQuery = Type.Object({
  token: Type.Optional(Type.String()),
  expires: Type.Optional(Type.String()),
  download: Type.Optional(Type.String({ maxLength: 1024 })),
  versionId: Type.Optional(Type.String()),
})

interface Query {
  Querystring: Static<typeof ReadQuery>
}

interface ObjectRoutesDeps extends DownloadDeps, UploadDeps {
  now: () => number
}

export function addObjectRoutes(app: FastifyInstance, deps: ObjectRoutesDeps): void {
  const open = { config: { access: 'public' } } as const
  const readable = { ...open, schema: { querystring: ReadQuery } } as const
  const signedIn = { config: { access: 'authenticated' } } as const
  const positions = new FolderPositions()
  const signedUrl: RlsContext = { role: 'service', reason: 'signed URL' }

  const signed = async (request: FastifyRequest<Query>, reply: FastifyReply, at: string) => {
    const { bucket: key, path } = splitTarget(rawRest(request.raw.url ?? '', at))
    const { tenant, query } = request
    request.admitted = false
    rejectVersion(query.versionId)
    const claims = readToken(query.token ?? '', validSecrets(tenant.manifest, deps.now()), {
      scope: 'read',
      tenant: tenant.id,
      path,
      now: deps.now() / 1000,
      expires: query.expires,
    })
    const bucket = await findBucket(tenant, signedUrl, key)
    requireBucket(claims, bucket)
    request.admitted = true
    return sendObject(
      deps,
      { bucket: bucket.id, path, context: signedUrl, download: decodedAgain(query.download), dependsOnCaller: false },
      request,
      reply,
    )
  }

  const send = (
    request: FastifyRequest<Query>,
    reply: FastifyReply,
    at: string,
    context: RlsContext,
    dependsOnCaller: boolean,
  ) => {
    const { bucket, path } = splitTarget(rawRest(request.raw.url ?? '', at))
    return sendObject(
      deps,
      { bucket, path, context, download: request.query.download, dependsOnCaller },
      request,
      reply,
    )
  }

  const plain = async (request: FastifyRequest<Query>, reply: FastifyReply) => {
    if (request.query.token !== undefined) return signed(request, reply, prefix)
    rejectVersion(request.query.versionId)
    return send(request, reply, prefix, request.rls, true)
  }

  // Declares HEAD as well, because the HEAD that Fastify adds to a GET route sends a Content-Length of 0.
  const readRoute = { method: ['GET', 'HEAD'], schema: { querystring: ReadQuery } }
  const publicRoute = { ...readRoute, config: { access: 'public' } } as const
  app.route<Query>({
    ...readRoute,
    config: { access: 'signed' },
    url: `${prefix}sign/:bucket/*`,
    handler: (request, reply) => signed(request, reply, `${prefix}sign/`),
  })
  app.route<Query>({ ...publicRoute, url: `${prefix}:bucket/*`, handler: plain })
  for (const [at, dependsOnCaller] of [
    [`${prefix}public/`, false],
    [`${prefix}authenticated/`, true],
  ] as const) {
    app.route<Query>({
      ...publicRoute,
      url: `${at}:bucket/*`,
      handler: async (request, reply) => {
        rejectVersion(request.query.versionId)
        return orFromBucket(
          () => send(request, reply, at, dependsOnCaller ? request.rls : { role: 'anon' }, dependsOnCaller),
          () => plain(request, reply),
        )
      },
    })
  }

  for (const at of [`${prefix}info/`, `${prefix}info/public/`, `${prefix}info/authenticated/`]) {
    app.get<Query>(`${at}:bucket/*`, readable, async (request, reply) => {
      rejectVersion(request.query.versionId)
      const sendInfo = async () => {
        const { bucket, path } = splitTarget(rawRest(request.raw.url ?? '', at))
        const { object, bucketName } = await findObject(request.tenant, request.rls, bucket, path)
        void reply.header('etag', `"${object.etag}"`).header('last-modified', new Date(object.updatedAt).toUTCString())
        return presentInfo(object, bucketName)
      }
      return orFromBucket(sendInfo, () => plain(request, reply))
    })
  }

  app.post<{ Params: { bucket: string }; Body: Static<typeof ListBody> }>(
    `${prefix}list/:bucket`,
    { ...open, schema: { body: ListBody } },
    async ({ tenant, rls, params, body }) => {
      const bucket = await findBucket(tenant, rls, params.bucket)
      rejectVersions(body)
      const folder = (body.prefix ?? '').replace(/^\/+|\/+$/g, '')
      const column = body.sortBy?.column ?? 'name'
      const entries = await listFolder(
        tenant,
        rls,
        bucket,
        {
          folder: folder === '' ? '' : `${folder}/`,
          search: body.search ?? '',
          column: column === 'last_accessed_at' ? 'updated_at' : column,
          order: body.sortBy?.order ?? 'asc',
          limit: body.limit ?? 100,
          offset: body.offset ?? 0,
        },
        positions,
      )
      return entries.map((entry) =>
        entry.kind === 'object'
          ? presentListed(entry.object, entry.name)
          : { name: entry.name, id: null, updated_at: null, created_at: null, last_accessed_at: null, metadata: null },
      )
    },
  )

  app.post<{ Params: { bucket: string }; Body: Static<typeof KeysBody> }>(
    `${prefix}list-v2/:bucket`,
    { ...open, schema: { body: KeysBody } },
    async ({ tenant, rls, params, body }) => {
      const bucket = await findBucket(tenant, rls, params.bucket)
      rejectVersions(body)
      const query = {
        prefix: body.prefix ?? '',
        after: body.cursor,
        order: body.sortBy?.order ?? 'asc',
        asFolders: body.with_delimiter ?? false,
        limit: body.limit ?? 1000,
      }
      const column = body.sortBy?.column ?? 'name'
      const { keys, next } = await (column === 'name'
        ? listKeys(tenant, rls, bucket, query)
        : listByDate(tenant, rls, bucket, { ...query, column }))
      return {
        hasNext: next !== undefined,
        ...(next === undefined ? {} : { nextCursor: next }),
        folders: keys.flatMap((entry) => (entry.kind === 'folder' ? [{ name: `${entry.key}/`, key: entry.key }] : [])),
        objects: keys.flatMap((entry) =>
          entry.kind === 'object' ? [{ ...presentListed(entry.object, entry.key), key: entry.key }] : [],
        ),
      }
    },
  )

  app.post<{ Body: MoveBody }>(
    `${prefix}move`,
    { ...signedIn, schema: { body: MoveBody } },
    async ({ tenant, rls, body }) => {
      rejectVersion(body.sourceVersionId)
      const from = await findObject(tenant, rls, body.bucketId, body.sourceKey)
      const bucket = await findBucket(tenant, rls, body.destinationBucket ?? body.bucketId)
      const path = checkNewPath(body.destinationKey, deps.limits.pathBytes)
      await atCommit(deps.failpoint, 'move', () => moveObject(tenant, rls, from, { bucket, path }))
      return { message: 'Successfully moved' }
    },
  )

  app.post<{ Body: MoveBody }>(`${prefix}copy`, { ...signedIn, schema: { body: MoveBody } }, async (request) => {
    const { tenant, rls, body } = request
    rejectVersion(body.sourceVersionId)
    const from = { bucket: body.bucketId, path: body.sourceKey, context: rls }
    const found = await findObject(tenant, rls, from.bucket, from.path)
    const bucket = await findBucket(tenant, rls, body.destinationBucket ?? body.bucketId)
    const path = checkNewPath(body.destinationKey, deps.limits.pathBytes)
    const { object, blob: source } = await openObject(deps, tenant, from, found.object)
    // A copy uses the protocol of uploads, so that quota, rules and durability are the same.
    const begin = async () => {
      const { contentType, ...rest } = copied(object, body, request.headers['x-metadata'])
      await deps.failpoint('copy.before-upload')
      const upload = await Upload.begin(deps, {
        tenant,
        context: rls,
        bucket,
        path,
        contentType,
        overwrite: false,
        declaredSize: object.size,
        maxBytes: undefined,
      })
      return { upload, ...rest }
    }
    const { upload, ...rest } = await begin().catch(async (error: unknown) => {
      await source.close()
      throw error
    })
    const bytes = source.stream(0, Math.max(0, object.size - 1))
    try {
      await upload.write(bytes)
    } finally {
      // An upload that was rejected before its first byte has not closed the blob.
      bytes.destroy()
    }
    const { id } = await upload.commit(rest)
    return { Key: `${bucket.name}/${path}`, Id: id, id }
  })
}

/**
 * Returns the type and metadata of a copy, from its source or from the request.
 * @param header the request's `x-metadata`
 * @throws RuntimeError BAD_REQUEST, BODY_TOO_LARGE
 */
function copied(
  { contentType, contentEncoding, cacheControl, metadata }: StoredObject,
  { copyMetadata, metadata: instead }: MoveBody,
  header: string | string[] | undefined,
) {
  if (copyMetadata !== false) return { contentType, contentEncoding, cacheControl, metadata }
  return {
    contentType: instead?.mimetype === undefined ? contentType : mediaType(instead.mimetype),
    contentEncoding:
      instead?.contentEncoding === undefined ? contentEncoding : contentEncodingOf(instead.contentEncoding),
    cacheControl: instead?.cacheControl === undefined ? cacheControl : cacheControlOf(instead.cacheControl),
    metadata: metadataOf(decodeHeader(header)),
  }
}

/**
 * Runs a route whose path begins with a fixed word, and then the one for a bucket of that name if the object is not found.
 * The fixed word takes precedence, so that a bucket of that name can not replace the route.
 */
async function orFromBucket<T>(route: () => Promise<T>, fromBucket: () => Promise<T>): Promise<T> {
  const isAbsent = (error: unknown) =>
    error instanceof RuntimeError && (error.code === 'NoSuchBucket' || error.code === 'NoSuchKey')
  try {
    return await route()
  } catch (error) {
    if (!isAbsent(error)) throw error
    return fromBucket().catch((other: unknown) => {
      throw isAbsent(other) ? error : other
    })
  }
}

/** Decodes a file name a second time, because clients encode the name that they append to a signed URL twice. */
function decodedAgain(name: string | undefined): string | undefined {
  try {
    return name === undefined ? undefined : decodeURIComponent(name)
  } catch {
    return name
  }
}
