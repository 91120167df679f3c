// What storage clients can ask for and there is none of: refused by name, so that nobody takes another answer for it.
import type { FastifyInstance } from 'fastify'
import { Type } from 'typebox'
import { RuntimeError } from '../errors.ts'

/** Versions, lifecycles and transformations are excluded by the specification (section 1.6). */
export function featureAbsent(what: string): RuntimeError {
  return new RuntimeError('FeatureNotEnabled', none(what))
}

function none(what: string): string {
  return `there are no ${what} here`
}

/** @throws RuntimeError FeatureNotEnabled: the current object must not be taken for the version that is meant */
export function rejectVersion(versionId: string | null | undefined): void {
  if (versionId !== undefined && versionId !== null) throw featureAbsent('versions of objects')
}

/** What storage clients can add to a listing; only the defaults are possible. */
export const VersionOptions = {
  noncurrentVersions: Type.Optional(Type.String()),
  deleteMarkers: Type.Optional(Type.String()),
  exactMatch: Type.Optional(Type.Boolean()),
}

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

/** Its clients read errors of a form of their own. */
const catalogue = '/storage/v1/iceberg/v1/*'

const absent: readonly (readonly [url: string, what: string])[] = [
  ['/storage/v1/render/image/*', 'transformations of images'],
  ['/storage/v1/bucket/:key/lifecycle', 'lifecycles of buckets'],
  ['/storage/v1/vector/*', 'vector buckets'],
  ['/storage/v1/iceberg/bucket', 'analytics buckets'],
  ['/storage/v1/iceberg/bucket/*', 'analytics buckets'],
  [catalogue, 'analytics buckets'],
]

export function addAbsentFeatureRoutes(app: FastifyInstance): void {
  for (const [url, what] of absent) {
    app.route({
      method: ['GET', 'POST', 'PUT', 'DELETE'],
      url,
      config: { access: 'anyone' },
      handler: async () => {
        throw url === catalogue
          ? new RuntimeError('FeatureNotEnabled', none(what), {
              extra: { error: { message: none(what), type: 'FeatureNotEnabled', code: 400 } },
            })
          : featureAbsent(what)
      },
    })
  }
}
