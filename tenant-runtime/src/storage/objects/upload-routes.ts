// HTTP routes of uploads (specification, section 4.2): POST and PUT of bytes, also with a signed URL. Bodies are streamed.
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { Type, type Static } from 'typebox'
import { RuntimeError } from '../../errors.ts'
import type { RlsContext } from '../../tenancy/rls-context.ts'
import { findBucket } from '../buckets/bucket-store.ts'
import { checkNewPath, rawRest, splitTarget } from '../object-path.ts'
import { readToken, requireBucket, validSecrets } from '../signing/token.ts'
import { presentUploaded } from './object.ts'
import { readUploadBody } from './upload-body.ts'
import { Upload, type UploadDeps } from './upload.ts'

const SignedQuery = Type.Object({ token: Type.Optional(Type.String()) })

const prefix = '/storage/v1/object/'
const signedPrefix = '/storage/v1/object/upload/sign/'

export function addUploadRoutes(app: FastifyInstance, deps: UploadDeps, now: () => number): void {
  // Bodies are not parsed, whatever their type is.
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('*', (_request, _payload, done) => done(null, undefined))

  const receive = async (
    request: FastifyRequest,
    target: { bucket: string; path: string; context: RlsContext; overwrite: boolean },
  ) => {
    const { tenant } = request
    const bucket = await findBucket(tenant, target.context, target.bucket)
    let upload: Upload | undefined
    const form = await readUploadBody(request.raw, async ({ source, contentType, declaredSize, maxBytes }) => {
      upload = await Upload.begin(deps, {
        tenant,
        context: target.context,
        bucket,
        path: checkNewPath(target.path, deps.limits.pathBytes),
        contentType,
        overwrite: target.overwrite,
        declaredSize,
        maxBytes,
      })
      await upload.write(source)
    }).catch(async (error: unknown) => {
      await upload?.abandon()
      throw error
    })
    if (upload === undefined) throw new RuntimeError('BAD_REQUEST', 'The request has no file.')
    return presentUploaded(await upload.commit(form), bucket.name)
  }

  for (const method of ['POST', 'PUT'] as const) {
    app.route({
      method,
      url: `${prefix}:bucket/*`,
      config: { access: 'authenticated' },
      handler: async (request) => {
        const { bucket, path } = splitTarget(rawRest(request.raw.url ?? '', prefix))
        const overwrite = method === 'PUT' || request.headers['x-upsert'] !== 'false'
        return receive(request, { bucket, path, context: request.rls, overwrite })
      },
    })
  }

  app.put<{ Querystring: Static<typeof SignedQuery> }>(
    `${signedPrefix}:bucket/*`,
    { config: { access: 'signed' }, schema: { querystring: SignedQuery } },
    async (request) => {
      const { bucket: key, path } = splitTarget(rawRest(request.raw.url ?? '', signedPrefix))
      const { tenant, query } = request
      const claims = readToken(query.token ?? '', validSecrets(tenant.manifest, now()), {
        scope: 'upload',
        tenant: tenant.id,
        path,
        now: now() / 1000,
        expires: undefined,
      })
      const bucket = await findBucket(tenant, { role: 'service', reason: 'signed upload URL' }, key)
      requireBucket(claims, bucket)
      request.admitted = true
      // The upload runs as the user who signed the URL, so that the current policies apply to that user.
      const context: RlsContext =
        claims.owner === null
          ? { role: 'service', reason: 'signed upload URL' }
          : {
              role: 'authenticated',
              userId: claims.owner,
              claims: JSON.stringify({ sub: claims.owner, role: 'authenticated' }),
            }
      return receive(request, { bucket: bucket.id, path, context, overwrite: claims.upsert })
    },
  )
}
