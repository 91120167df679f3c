// HTTP routes of buckets (specification, section 4.1), in the form of the specification and in that of storage clients.
import type { FastifyInstance } from 'fastify'
import { Type, type Static } from 'typebox'
import { RuntimeError } from '../../errors.ts'
import { emptyBucket } from '../objects/object-store.ts'
import { featureAbsent } from '../absent-features.ts'
import type { Collector } from '../collector.ts'
import { atCommit, type StorageFailpoint } from '../failpoints.ts'
import {
  checkBucketName,
  checkMimeTypes,
  parseSize,
  policies,
  presentBucket,
  presentBucketItem,
  presentBucketWithCounts,
  type BucketConfig,
} from './bucket.ts'
import { createBucket, deleteBucket, findBucket, listBuckets, revokeSignedUrls, updateBucket } from './bucket-store.ts'

const Size = Type.Union([Type.Number(), Type.String(), Type.Null()])
const Types = Type.Union([Type.Array(Type.String({ maxLength: 255 }), { maxItems: 100 }), Type.Null()])
const BucketBody = Type.Object(
  {
    id: Type.Optional(Type.String()),
    name: Type.Optional(Type.String()),
    policy: Type.Optional(Type.Enum([...policies])),
    allowed_mime_types: Type.Optional(Types),
    max_file_size: Type.Optional(Size),
    config: Type.Optional(
      Type.Object(
        { allowed_mime_types: Type.Optional(Types), max_file_size: Type.Optional(Size) },
        { additionalProperties: false },
      ),
    ),
    // Names that storage clients use for the same fields.
    public: Type.Optional(Type.Boolean()),
    file_size_limit: Type.Optional(Size),
    type: Type.Optional(Type.String()),
    versioning_status: Type.Optional(Type.String()),
  },
  { additionalProperties: false },
)
type BucketBody = Static<typeof BucketBody>

const ListQuery = Type.Object(
  {
    limit: Type.Optional(Type.String({ pattern: '^[0-9]{1,4}$' })),
    offset: Type.Optional(Type.String({ pattern: '^[0-9]{1,9}$' })),
    search: Type.Optional(Type.String({ maxLength: 63 })),
    sortColumn: Type.Optional(Type.Enum(['name', 'created_at', 'updated_at', 'id'])),
    sortOrder: Type.Optional(Type.Enum(['asc', 'desc'])),
  },
  { additionalProperties: false },
)

interface ByKey {
  Params: { key: string }
  Body: BucketBody
}

export function addBucketRoutes(app: FastifyInstance, collector: Collector, failpoint: StorageFailpoint): void {
  const signedIn = { config: { access: 'authenticated' } } as const

  app.post<{ Body: BucketBody }>(
    '/storage/v1/bucket',
    { ...signedIn, schema: { body: BucketBody } },
    async (request, reply) => {
      const name = request.body.name ?? request.body.id
      if (name === undefined) throw new RuntimeError('MISSING_FIELD', 'Field "name" is required.')
      checkBucketName(name)
      rejectAbsent(request.body)
      const config: BucketConfig = { allowed_mime_types: [], max_file_size: 0, ...readConfig(request.body) }
      const bucket = await createBucket(request.tenant, request.rls, {
        name,
        policy: readPolicy(request.body) ?? 'private',
        config,
      })
      return reply.status(201).send(presentBucket(bucket))
    },
  )

  app.get<{ Querystring: Static<typeof ListQuery> }>(
    '/storage/v1/bucket',
    { config: { access: 'public' }, schema: { querystring: ListQuery } },
    async ({ tenant, rls, query }) => {
      const buckets = await listBuckets(tenant, rls, {
        search: query.search ?? '',
        sortColumn: query.sortColumn === undefined || query.sortColumn === 'id' ? 'name' : query.sortColumn,
        sortOrder: query.sortOrder ?? 'asc',
        limit: Number(query.limit ?? 1000),
        offset: Number(query.offset ?? 0),
      })
      return buckets.map(presentBucketItem)
    },
  )

  app.get<ByKey>('/storage/v1/bucket/:key', { config: { access: 'public' } }, async ({ tenant, rls, params }) =>
    presentBucketWithCounts(await findBucket(tenant, rls, params.key)),
  )

  for (const method of ['PATCH', 'PUT'] as const) {
    app.route<ByKey>({
      method,
      url: '/storage/v1/bucket/:key',
      ...signedIn,
      schema: { body: BucketBody },
      handler: async ({ tenant, rls, params, body }) => {
        if (body.name !== undefined && body.name !== params.key)
          throw new RuntimeError('INVALID_BUCKET', 'Field "name" can not be changed: a bucket keeps its name.')
        rejectAbsent(body)
        const bucket = await updateBucket(tenant, rls, params.key, {
          policy: readPolicy(body),
          config: readConfig(body),
        })
        return {
          message: 'Successfully updated',
          id: bucket.id,
          config: bucket.config,
          policy: bucket.policy,
          updated_at: bucket.updatedAt,
        }
      },
    })
  }

  app.delete<ByKey>('/storage/v1/bucket/:key', signedIn, async ({ tenant, rls, params }) => {
    await atCommit(failpoint, 'bucket-delete', () => deleteBucket(tenant, rls, params.key))
    return { message: 'Successfully deleted' }
  })

  // There is no CDN, so there is nothing to purge.
  for (const url of ['/storage/v1/cdn/:key', '/storage/v1/cdn/:key/*']) {
    app.delete<ByKey>(url, signedIn, async ({ tenant, rls, params }) => {
      await findBucket(tenant, rls, params.key)
      return { message: 'success' }
    })
  }

  app.post<ByKey>('/storage/v1/bucket/:key/empty', signedIn, async ({ tenant, rls, params }) => {
    const bucket = await findBucket(tenant, rls, params.key)
    const removed = await atCommit(failpoint, 'empty', () => emptyBucket(tenant, rls, bucket))
    collector.wake(tenant)
    return { message: 'Successfully emptied', removed }
  })

  app.post<ByKey>('/storage/v1/bucket/:key/revoke-signed-urls', signedIn, async ({ tenant, rls, params }) => {
    const bucket = await revokeSignedUrls(tenant, rls, params.key)
    return {
      message: 'Successfully revoked',
      id: bucket.id,
      signing_version: bucket.signingVersion,
      updated_at: bucket.updatedAt,
    }
  })
}

function rejectAbsent({ type, versioning_status: versioning }: BucketBody): void {
  if (type !== undefined && type !== 'STANDARD') throw featureAbsent(`buckets of type ${JSON.stringify(type)}`)
  if (versioning !== undefined && versioning !== 'DISABLED') throw featureAbsent('versions of objects')
}

function readPolicy(body: BucketBody) {
  if (body.policy !== undefined) return body.policy
  return body.public === undefined ? undefined : body.public ? 'public' : 'private'
}

/** Reads the fields that the body has. The specification's names take precedence over the clients'. */
function readConfig(body: BucketBody): Partial<BucketConfig> {
  const size = body.max_file_size ?? body.config?.max_file_size ?? body.file_size_limit
  const types = body.allowed_mime_types ?? body.config?.allowed_mime_types
  const isGiven = (value: unknown, ...fields: unknown[]) =>
    value !== undefined || fields.some((field) => field === null)
  return {
    ...(isGiven(size, body.max_file_size, body.file_size_limit)
      ? { max_file_size: parseSize(size ?? null, 'max_file_size') }
      : {}),
    ...(isGiven(types, body.allowed_mime_types) ? { allowed_mime_types: checkMimeTypes(types ?? []) } : {}),
  }
}
