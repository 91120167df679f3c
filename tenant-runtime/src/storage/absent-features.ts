// Features of storage clients that Tenantry does not have. Each is rejected by name, so that no client mistakes another
// response for the feature.
import type { FastifyInstance } from 'fastify'
import { Type } from 'typebox'
import { RuntimeError } from '../errors.ts'

/** Versions, lifecycles and transformations are excluded by the specification (section 1.6). */
export function featureAbsent(feature: string): RuntimeError {
  return new RuntimeError('FeatureNotEnabled', messageFor(feature))
}

function messageFor(feature: string): string {
  return `Storage does not support ${feature}.`
}

/**
 * Rejects a request for a version, because the current object may be another one.
 * @throws RuntimeError FeatureNotEnabled
 */
export function rejectVersion(versionId: string | null | undefined): void {
  if (versionId !== undefined && versionId !== null) throw featureAbsent('versions of objects')
}

/** Options that storage clients can add to a listing. Only their defaults are supported. */
export const VersionOptions = {
  noncurrentVersions: Type.Optional(Type.String()),
  deleteMarkers: Type.Optional(Type.String()),
  exactMatch: Type.Optional(Type.Boolean()),
}

/** Rejects a listing of versions. @throws RuntimeError FeatureNotEnabled */
export function rejectVersions({
  noncurrentVersions,
  deleteMarkers,
  exactMatch,
}: {
  noncurrentVersions?: string
  deleteMarkers?: string
  exactMatch?: boolean
}): void {
  if (
    (noncurrentVersions ?? 'exclude') !== 'exclude' ||
    (deleteMarkers ?? 'exclude') !== 'exclude' ||
    exactMatch === true
  )
    throw featureAbsent('versions of objects')
}

/** Routes of the Iceberg catalogue, whose clients read errors in another form. */
const catalogue = '/storage/v1/iceberg/v1/*'

const absent: readonly (readonly [url: string, feature: string])[] = [
  ['/storage/v1/render/image/*', 'transformations of images'],
  ['/storage/v1/bucket/:key/lifecycle', 'lifecycles of buckets'],
  ['/storage/v1/vector/*', 'vector buckets'],
  ['/storage/v1/iceberg/bucket', 'analytics buckets'],
  ['/storage/v1/iceberg/bucket/*', 'analytics buckets'],
  [catalogue, 'analytics buckets'],
]

export function addAbsentFeatureRoutes(app: FastifyInstance): void {
  for (const [url, feature] of absent) {
    app.route({
      method: ['GET', 'POST', 'PUT', 'DELETE'],
      url,
      config: { access: 'public' },
      handler: async () => {
        throw url === catalogue
          ? new RuntimeError('FeatureNotEnabled', messageFor(feature), {
              extra: { error: { message: messageFor(feature), type: 'FeatureNotEnabled', code: 400 } },
            })
          : featureAbsent(feature)
      },
    })
  }
}
