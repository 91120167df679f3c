// HTTP routes that delete objects: one by its path (specification, section 4.2), many by their paths, or a whole folder.
import type { FastifyInstance } from 'fastify'
import { Type, type Static } from 'typebox'
import { RuntimeError } from '../../errors.ts'
import { rejectVersion } from '../absent-features.ts'
import { findBucket } from '../buckets/bucket-store.ts'
import type { Collector } from '../collector.ts'
import { atCommit, type StorageFailpoint } from '../failpoints.ts'
import { rawRest, splitTarget } from '../object-path.ts'
import { presentListed } from './object.ts'
import { findObject, removeObject, removeObjects } from './object-store.ts'
import { removeFolder } from './remove-folder.ts'

const prefix = '/storage/v1/object/'

const RemoveBody = Type.Object({
  prefixes: Type.Optional(
    Type.Array(
      Type.Union([Type.String(), Type.Object({ path: Type.String(), versionId: Type.Optional(Type.String()) })]),
      { minItems: 1, maxItems: 1000 },
    ),
  ),
  prefix: Type.Optional(Type.String({ maxLength: 1025 })),
})

export function addRemoveRoutes(
  app: FastifyInstance,
  { collector, failpoint }: { collector: Collector; failpoint: StorageFailpoint },
): void {
  const signedIn = { config: { access: 'authenticated' } } as const

  app.delete(`${prefix}:bucket/*`, signedIn, async (request) => {
    const { bucket, path } = splitTarget(rawRest(request.raw.url ?? '', prefix))
    const found = await findObject(request.tenant, request.rls, bucket, path)
    await atCommit(failpoint, 'delete', () => removeObject(request.tenant, request.rls, found))
    collector.wake(request.tenant)
    return { message: 'Successfully deleted' }
  })

  app.delete<{ Params: { bucket: string }; Body: Static<typeof RemoveBody> }>(
    `${prefix}:bucket`,
    { ...signedIn, schema: { body: RemoveBody } },
    async ({ tenant, rls, params, body }) => {
      const { prefixes, prefix: folder } = body
      if ((prefixes === undefined) === (folder === undefined))
        throw new RuntimeError(
          'BAD_REQUEST',
          'The body must have either "prefixes", a list of paths, or "prefix", a folder.',
        )
      const bucket = await findBucket(tenant, rls, params.bucket)
      if (folder !== undefined) {
        const removed = await removeFolder(tenant, rls, bucket, folder, () => collector.wake(tenant))
        return { message: 'Successfully deleted', removed }
      }
      const paths = (prefixes ?? []).map((entry) => {
        if (typeof entry === 'string') return entry
        rejectVersion(entry.versionId)
        return entry.path
      })
      const removed = await atCommit(failpoint, 'delete-many', () => removeObjects(tenant, rls, bucket, paths))
      collector.wake(tenant)
      return removed.map((object) => ({ ...presentListed(object, object.path), bucket_id: bucket.name }))
    },
  )
}
