// HTTP routes that create signed URLs (specification, sections 4.2 and 5.5): one, many at once, or for an upload.
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { Type, type Static } from 'typebox'
import { Value } from 'typebox/value'
import { RuntimeError } from '../../errors.ts'
import type { RlsContext } from '../../tenancy/rls-context.ts'
import { featureAbsent, rejectVersion } from '../absent-features.ts'
import type { Bucket } from '../buckets/bucket.ts'
import { findBucket } from '../buckets/bucket-store.ts'
import { checkNewPath, checkPath, encodePath, rawRest, splitTarget } from '../object-path.ts'
import { findObject } from '../objects/object-store.ts'
import { uploadDenied } from '../storage-errors.ts'
import type { StorageLimits } from '../storage-limits.ts'
import { signClaims } from './token.ts'

const prefix = '/storage/v1/object/sign/'
const uploadPrefix = '/storage/v1/object/upload/sign/'
/** Validity of an upload URL, unless `maxSignedSeconds` is shorter. */
const uploadSeconds = 2 * 3600
/** Longest validity of a URL that an anonymous caller signs. */
const anonymousSeconds = 3600

const SignBody = Type.Union([
  Type.Object({
    expiresIn: Type.Optional(Type.Integer()),
    transform: Type.Optional(Type.Unknown()),
    versionId: Type.Optional(Type.String()),
  }),
  Type.Undefined(),
  Type.Null(),
])
const SignQuery = Type.Object({ expires_in: Type.Optional(Type.String()) })
const SignManyBody = Type.Object({
  expiresIn: Type.Optional(Type.Integer()),
  paths: Type.Array(Type.String(), { minItems: 1, maxItems: 1000 }),
})

export function addSignRoutes(app: FastifyInstance, limits: StorageLimits, now: () => number): void {
  const signedIn = { config: { access: 'authenticated' } } as const
  const { signedSeconds, maxSignedSeconds } = limits

  /** Returns the expiry of a URL that is signed now, in Unix seconds. The query takes precedence over the body. */
  const expiry = ({ role }: RlsContext, inQuery: string | undefined, inBody: number | undefined): number => {
    const max = role === 'anon' ? Math.min(anonymousSeconds, maxSignedSeconds) : maxSignedSeconds
    const seconds = inQuery === undefined ? (inBody ?? Math.min(signedSeconds, max)) : Number(inQuery)
    if (!Number.isInteger(seconds) || seconds < 1 || seconds > max) {
      const whose = max === maxSignedSeconds ? '' : ' for a caller that is not signed in'
      throw new RuntimeError(
        'BAD_REQUEST',
        `Parameter "expires_in" must be a whole number of seconds from 1 to ${max}${whose}.`,
      )
    }
    return Math.floor(now() / 1000) + seconds
  }

  const readUrl = ({ tenant, rls }: FastifyRequest, bucket: Bucket, path: string, expires: number) => {
    const token = signClaims(
      {
        v: 1,
        scope: 'read',
        tenant: tenant.id,
        bucket: bucket.id,
        version: bucket.signingVersion,
        path,
        expires,
        upsert: false,
        owner: null,
        ...(rls.role === 'anon' ? { anonymous: true } : {}),
      },
      tenant.manifest.signing_secret,
    )
    const query = `token=${token}&expires=${expires}`
    return {
      encoded: `${prefix}${bucket.name}/${encodePath(path)}?${query}`,
      plain: `/object/sign/${bucket.name}/${path}?${query}`,
    }
  }

  app.post<{ Querystring: { expires_in?: string }; Body: Static<typeof SignBody> }>(
    `${prefix}:bucket/*`,
    { config: { access: 'public' }, schema: { querystring: SignQuery } },
    async (request) => {
      const { bucket: key, path } = splitTarget(rawRest(request.raw.url ?? '', prefix))
      const { tenant, rls, query, body } = request
      if (body?.transform !== undefined) throw featureAbsent('transformations of images')
      rejectVersion(body?.versionId)
      const expires = expiry(rls, query.expires_in, Value.Check(SignBody, body) ? body?.expiresIn : Number.NaN)
      const bucket = await findBucket(tenant, rls, key)
      // Only callers who may read the object may sign a URL for it.
      await findObject(tenant, rls, bucket.id, path)
      const { encoded, plain } = readUrl(request, bucket, path, expires)
      return {
        url: `${request.basePath}${encoded}`,
        expires_at: new Date(expires * 1000).toISOString(),
        signedURL: plain,
      }
    },
  )

  app.post<{ Params: { bucket: string }; Body: Static<typeof SignManyBody> }>(
    `${prefix}:bucket`,
    { config: { access: 'public' }, schema: { body: SignManyBody } },
    async (request) => {
      const { tenant, rls, params, body } = request
      const expires = expiry(rls, undefined, body.expiresIn)
      const bucket = await findBucket(tenant, rls, params.bucket)
      return Promise.all(
        body.paths.map(async (path) => {
          try {
            await findObject(tenant, rls, bucket.id, checkPath(path))
            return { path, error: null, signedURL: readUrl(request, bucket, path, expires).plain }
          } catch (error) {
            if (error instanceof RuntimeError && error.status < 500)
              return {
                path,
                error: 'Either the object does not exist or you do not have access to it',
                signedURL: null,
              }
            throw error
          }
        }),
      )
    },
  )

  app.post(`${uploadPrefix}:bucket/*`, signedIn, async (request) => {
    const { bucket: key, path } = splitTarget(rawRest(request.raw.url ?? '', uploadPrefix))
    const { tenant, rls } = request
    checkNewPath(path, limits.pathBytes)
    const bucket = await findBucket(tenant, rls, key)
    const owner = rls.role === 'authenticated' ? rls.userId : null
    if (owner !== null && bucket.ownerId !== owner && bucket.policy !== 'authenticated') {
      throw uploadDenied(bucket.policy)
    }
    const expires = Math.floor(now() / 1000) + Math.min(uploadSeconds, maxSignedSeconds)
    const upsert = request.headers['x-upsert'] === 'true'
    const token = signClaims(
      {
        v: 1,
        scope: 'upload',
        tenant: tenant.id,
        bucket: bucket.id,
        version: bucket.signingVersion,
        path,
        expires,
        upsert,
        owner,
      },
      tenant.manifest.signing_secret,
    )
    return {
      url: `/object/upload/sign/${bucket.name}/${path}?token=${token}`,
      token,
      expires_at: new Date(expires * 1000).toISOString(),
    }
  })
}
