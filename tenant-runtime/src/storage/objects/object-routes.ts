// Objects over HTTP but for uploads (specification, section 4.2): reading, information, listing, moving, removing.
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { Type, type Static } from 'typebox'
import { RuntimeError } from '../../errors.ts'
import type { RlsContext } from '../../tenancy/rls-context.ts'
import { findBucket } from '../buckets/bucket-store.ts'
import type { Collector } from '../collector.ts'
import { checkNewPath, rawRest, splitTarget } from '../object-path.ts'
import { readToken, requireBucket } from '../signing/token.ts'
import { sendObject, type DownloadDeps } from './download.ts'
import { listKeys } from './list-keys.ts'
import { presentInfo, presentListed } from './object.ts'
import { findObject, listFolder, moveObject, removeObject, removeObjects } from './object-store.ts'
import { Upload, type UploadDeps } from './upload.ts'

const prefix = '/storage/v1/object/'

const ListBody = Type.Object({
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
  prefix: Type.Optional(Type.String({ maxLength: 1024 })),
  limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 1000 })),
  cursor: Type.Optional(Type.String({ maxLength: 2048 })),
  with_delimiter: Type.Optional(Type.Boolean()),
  sortBy: Type.Optional(Type.Object({ column: Type.Optional(Type.Literal('name')), order: Type.Optional(Type.Enum(['asc', 'desc'])) })),
})

const RemoveBody = Type.Object({
  prefixes: Type.Array(Type.Union([Type.String(), Type.Object({ path: Type.String() })]), { minItems: 1, maxItems: 1000 }),
})

const MoveBody = Type.Object({
  bucketId: Type.String(),
  sourceKey: Type.String(),
  destinationKey: Type.String(),
  destinationBucket: Type.Optional(Type.String()),
  copyMetadata: Type.Optional(Type.Boolean()),
})
type MoveBody = Static<typeof MoveBody>

const ReadQuery = Type.Object({
  token: Type.Optional(Type.String()),
  expires: Type.Optional(Type.String()),
  download: Type.Optional(Type.String({ maxLength: 1024 })),
})

interface Query {
  Querystring: Static<typeof ReadQuery>
}

export interface ObjectRoutesDeps extends DownloadDeps, UploadDeps {
  now: () => number
}

export function addObjectRoutes(app: FastifyInstance, deps: ObjectRoutesDeps, collector: Collector): void {
  const anyone = { config: { access: 'anyone' } } as const
  const readable = { ...anyone, schema: { querystring: ReadQuery } } as const
  const signedIn = { config: { access: 'authenticated' } } as const
  const signedUrl: RlsContext = { role: 'service', reason: 'signed URL' }

  const signed = async (request: FastifyRequest<Query>, reply: FastifyReply, at: string) => {
    const { bucket: key, path } = splitTarget(rawRest(request.raw.url ?? '', at))
    const { tenant, query } = request
    const claims = readToken(query.token ?? '', tenant.manifest.signing_secret, {
      scope: 'read', tenant: tenant.id, path, now: deps.now() / 1000, expires: query.expires,
    })
    const bucket = await findBucket(tenant, signedUrl, key)
    requireBucket(claims, bucket)
    return sendObject(deps, { bucket: bucket.id, path, context: signedUrl, download: query.download }, request, reply)
  }

  const read = (at: string, who: (request: FastifyRequest) => RlsContext) => async (request: FastifyRequest<Query>, reply: FastifyReply) => {
    if (request.query.token !== undefined && at === prefix) return signed(request, reply, at)
    const { bucket, path } = splitTarget(rawRest(request.raw.url ?? '', at))
    return sendObject(deps, { bucket, path, context: who(request), download: request.query.download }, request, reply)
  }

  app.get<Query>(`${prefix}sign/:bucket/*`, { config: { access: 'signed' }, schema: { querystring: ReadQuery } }, (request, reply) => signed(request, reply, `${prefix}sign/`))
  app.get<Query>(`${prefix}public/:bucket/*`, readable, read(`${prefix}public/`, () => ({ role: 'anon' })))
  app.get<Query>(`${prefix}authenticated/:bucket/*`, readable, read(`${prefix}authenticated/`, ({ rls }) => rls))
  app.get<Query>(`${prefix}:bucket/*`, readable, read(prefix, ({ rls }) => rls))

  for (const at of [`${prefix}info/`, `${prefix}info/public/`, `${prefix}info/authenticated/`]) {
    app.get(`${at}:bucket/*`, anyone, async (request) => {
      const { bucket, path } = splitTarget(rawRest(request.raw.url ?? '', at))
      const { object, bucketName } = await findObject(request.tenant, request.rls, bucket, path)
      return presentInfo(object, bucketName)
    })
  }

  app.delete(`${prefix}:bucket/*`, signedIn, async (request) => {
    const { bucket, path } = splitTarget(rawRest(request.raw.url ?? '', prefix))
    const { object, bucketName } = await findObject(request.tenant, request.rls, bucket, path)
    await removeObject(request.tenant, request.rls, bucketName, object)
    collector.wake(request.tenant)
    return { message: 'Successfully deleted' }
  })

  app.delete<{ Params: { bucket: string }; Body: Static<typeof RemoveBody> }>(
    `${prefix}:bucket`,
    { ...signedIn, schema: { body: RemoveBody } },
    async ({ tenant, rls, params, body }) => {
      const bucket = await findBucket(tenant, rls, params.bucket)
      const paths = body.prefixes.map((entry) => (typeof entry === 'string' ? entry : entry.path))
      const removed = await removeObjects(tenant, rls, bucket, paths)
      collector.wake(tenant)
      return removed.map((object) => ({ ...presentListed(object, object.path), bucket_id: bucket.name }))
    },
  )

  app.post<{ Params: { bucket: string }; Body: Static<typeof ListBody> }>(
    `${prefix}list/:bucket`,
    { ...anyone, schema: { body: ListBody } },
    async ({ tenant, rls, params, body }) => {
      const bucket = await findBucket(tenant, rls, params.bucket)
      const folder = (body.prefix ?? '').replace(/^\/+|\/+$/g, '')
      const column = body.sortBy?.column ?? 'name'
      const entries = await listFolder(tenant, rls, bucket, {
        folder: folder === '' ? '' : `${folder}/`,
        search: body.search ?? '',
        column: column === 'last_accessed_at' ? 'updated_at' : column,
        order: body.sortBy?.order ?? 'asc',
        limit: body.limit ?? 100,
        offset: body.offset ?? 0,
      })
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
        objects: keys.flatMap((entry) => (entry.kind === 'object' ? [{ ...presentListed(entry.object, entry.key), key: entry.key }] : [])),
      }
    },
  )

  app.post<{ Body: MoveBody }>(`${prefix}move`, { ...signedIn, schema: { body: MoveBody } }, async ({ tenant, rls, body }) => {
    const from = await findObject(tenant, rls, body.bucketId, body.sourceKey)
    const bucket = await findBucket(tenant, rls, body.destinationBucket ?? body.bucketId)
    await moveObject(tenant, rls, from, { bucket, path: checkNewPath(body.destinationKey, deps.limits.pathBytes) })
    return { message: 'Successfully moved' }
  })

  app.post<{ Body: MoveBody }>(`${prefix}copy`, { ...signedIn, schema: { body: MoveBody } }, async (request) => {
    const { tenant, rls, body } = request
    const { object } = await findObject(tenant, rls, body.bucketId, body.sourceKey)
    const bucket = await findBucket(tenant, rls, body.destinationBucket ?? body.bucketId)
    const path = checkNewPath(body.destinationKey, deps.limits.pathBytes)
    const source = await deps.backend.open(tenant.id, object.blobId)
    if (source === undefined) throw new RuntimeError('FILE_MISSING', 'Object not found: its file is missing')
    // Through the same protocol as an upload: quota, rules and durability are the same.
    const upload = new Upload(deps, { tenant, context: rls, bucket, path, contentType: object.contentType, overwrite: false, declaredSize: object.size, atMost: undefined })
    try {
      await upload.begin()
    } catch (error) {
      await source.close()
      throw error
    }
    await upload.write(source.stream(0, Math.max(0, object.size - 1)))
    const metadata = body.copyMetadata === false ? {} : object.metadata
    const copied = await upload.commit({ cacheControl: object.cacheControl, metadata })
    return { Key: `${bucket.name}/${path}`, Id: copied.id, id: copied.id }
  })
}
