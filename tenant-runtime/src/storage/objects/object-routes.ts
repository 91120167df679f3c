// Objects over HTTP (specification, section 4.2): reading, information, listing, moving, copying.
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { Type, type Static } from 'typebox'
import { RuntimeError } from '../../errors.ts'
import type { RlsContext } from '../../tenancy/rls-context.ts'
import { rejectVersion, rejectVersions, VersionOptions } from '../absent-features.ts'
import { findBucket } from '../buckets/bucket-store.ts'
import { atCommit } from '../failpoints.ts'
import { checkNewPath, rawRest, splitTarget } from '../object-path.ts'
import { readToken, requireBucket } from '../signing/token.ts'
import { openObject, sendObject, type DownloadDeps } from './download.ts'
import { FolderPositions } from './folder-positions.ts'
import { listFolder } from './list-folder.ts'
import { listKeys } from './list-keys.ts'
import { presentInfo, presentListed, type StoredObject } from './object.ts'
import { findObject, moveObject } from './object-store.ts'
import { Upload, type UploadDeps } from './upload.ts'
import { cacheControlOf, mediaType } from './upload-body.ts'

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
    Type.Object({ column: Type.Optional(Type.Literal('name')), order: Type.Optional(Type.Enum(['asc', 'desc'])) }),
  ),
})

const MoveBody = Type.Object({
  bucketId: Type.String(),
  sourceKey: Type.String(),
  destinationKey: Type.String(),
  destinationBucket: Type.Optional(Type.String()),
  sourceVersionId: Type.Optional(Type.String()),
  copyMetadata: Type.Optional(Type.Boolean()),
  /** What the copy has instead, where `copyMetadata` is false. */
  metadata: Type.Optional(
    Type.Object({ cacheControl: Type.Optional(Type.String()), mimetype: Type.Optional(Type.String()) }),
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
  const anyone = { config: { access: 'anyone' } } as const
  const readable = { ...anyone, schema: { querystring: ReadQuery } } as const
  const signedIn = { config: { access: 'authenticated' } } as const
  const positions = new FolderPositions()
  const signedUrl: RlsContext = { role: 'service', reason: 'signed URL' }

  const signed = async (request: FastifyRequest<Query>, reply: FastifyReply, at: string) => {
    const { bucket: key, path } = splitTarget(rawRest(request.raw.url ?? '', at))
    const { tenant, query } = request
    request.admitted = false
    rejectVersion(query.versionId)
    const claims = readToken(query.token ?? '', tenant.manifest.signing_secret, {
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
      { bucket: bucket.id, path, context: signedUrl, download: decodedAgain(query.download), byCaller: false },
      request,
      reply,
    )
  }

  const send = (
    request: FastifyRequest<Query>,
    reply: FastifyReply,
    at: string,
    context: RlsContext,
    byCaller: boolean,
  ) => {
    const { bucket, path } = splitTarget(rawRest(request.raw.url ?? '', at))
    return sendObject(deps, { bucket, path, context, download: request.query.download, byCaller }, request, reply)
  }

  const plain = async (request: FastifyRequest<Query>, reply: FastifyReply) => {
    if (request.query.token !== undefined) return signed(request, reply, prefix)
    rejectVersion(request.query.versionId)
    return send(request, reply, prefix, request.rls, true)
  }

  // Said to be of HEAD too: the HEAD that Fastify adds to a GET tells the length of what is sent, which is nothing.
  const reading = { method: ['GET', 'HEAD'], schema: { querystring: ReadQuery } }
  const anyones = { ...reading, config: { access: 'anyone' } } as const
  app.route<Query>({
    ...reading,
    config: { access: 'signed' },
    url: `${prefix}sign/:bucket/*`,
    handler: (request, reply) => signed(request, reply, `${prefix}sign/`),
  })
  app.route<Query>({ ...anyones, url: `${prefix}:bucket/*`, handler: plain })
  for (const [at, byCaller] of [
    [`${prefix}public/`, false],
    [`${prefix}authenticated/`, true],
  ] as const) {
    app.route<Query>({
      ...anyones,
      url: `${at}:bucket/*`,
      handler: async (request, reply) => {
        rejectVersion(request.query.versionId)
        return orOfBucket(
          () => send(request, reply, at, byCaller ? request.rls : { role: 'anon' }, byCaller),
          () => plain(request, reply),
        )
      },
    })
  }

  for (const at of [`${prefix}info/`, `${prefix}info/public/`, `${prefix}info/authenticated/`]) {
    app.get<Query>(`${at}:bucket/*`, readable, async (request, reply) => {
      rejectVersion(request.query.versionId)
      const inform = async () => {
        const { bucket, path } = splitTarget(rawRest(request.raw.url ?? '', at))
        const { object, bucketName } = await findObject(request.tenant, request.rls, bucket, path)
        return presentInfo(object, bucketName)
      }
      return orOfBucket(inform, () => plain(request, reply))
    })
  }

  app.post<{ Params: { bucket: string }; Body: Static<typeof ListBody> }>(
    `${prefix}list/:bucket`,
    { ...anyone, schema: { body: ListBody } },
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
    { ...anyone, schema: { body: KeysBody } },
    async ({ tenant, rls, params, body }) => {
      const bucket = await findBucket(tenant, rls, params.bucket)
      rejectVersions(body)
      const { keys, next } = await listKeys(tenant, rls, bucket, {
        prefix: body.prefix ?? '',
        after: body.cursor,
        order: body.sortBy?.order ?? 'asc',
        asFolders: body.with_delimiter ?? false,
        limit: body.limit ?? 1000,
      })
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
    // Through the same protocol as an upload: quota, rules and durability are the same.
    const begin = async () => {
      const { contentType, ...rest } = copied(object, body)
      await deps.failpoint('copy.before-upload')
      const upload = await Upload.begin(deps, {
        tenant,
        context: rls,
        bucket,
        path,
        contentType,
        overwrite: false,
        declaredSize: object.size,
        atMost: undefined,
      })
      return { upload, ...rest }
    }
    const { upload, cacheControl, metadata } = await begin().catch(async (error: unknown) => {
      await source.close()
      throw error
    })
    const bytes = source.stream(0, Math.max(0, object.size - 1))
    try {
      await upload.write(bytes)
    } finally {
      // What was refused before its first byte has not ended the blob's use.
      bytes.destroy()
    }
    const { id } = await upload.commit({ cacheControl, metadata })
    return { Key: `${bucket.name}/${path}`, Id: id, id }
  })
}

/** What a copy has of its source, and what instead of it. @throws RuntimeError BAD_REQUEST */
function copied({ contentType, cacheControl, metadata }: StoredObject, { copyMetadata, metadata: instead }: MoveBody) {
  if (copyMetadata !== false) return { contentType, cacheControl, metadata }
  return {
    contentType: instead?.mimetype === undefined ? contentType : mediaType(instead.mimetype),
    cacheControl: instead?.cacheControl === undefined ? cacheControl : cacheControlOf(instead.cacheControl),
    metadata: {},
  }
}

/**
 * Routes that begin with a word come first, so that nobody takes them over by making a bucket of that name; what they
 * do not find may be in such a bucket.
 */
async function orOfBucket<T>(route: () => Promise<T>, ofBucket: () => Promise<T>): Promise<T> {
  const isAbsent = (error: unknown) =>
    error instanceof RuntimeError && (error.code === 'NoSuchBucket' || error.code === 'NoSuchKey')
  try {
    return await route()
  } catch (error) {
    if (!isAbsent(error)) throw error
    return ofBucket().catch((other: unknown) => {
      throw isAbsent(other) ? error : other
    })
  }
}

/** Clients encode the name that they append to a signed URL twice. */
function decodedAgain(name: string | undefined): string | undefined {
  try {
    return name === undefined ? undefined : decodeURIComponent(name)
  } catch {
    return name
  }
}
