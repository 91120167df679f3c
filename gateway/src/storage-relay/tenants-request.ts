// Decides which requests to the region's bucket are about the files of one tenant only. Pure.

/** The part of a bucket in which the region's tenants have their files. */
export interface BucketPart {
  bucket: string
  /** Prefix of all keys, with a slash at its end, or empty. */
  prefix: string
}

/** Parameters of requests for one object: those of multipart uploads. */
const objectParameters: ReadonlySet<string> = new Set(['x-id', 'uploads', 'uploadId', 'partNumber'])
/** Parameters of lists of objects and of uploads. */
const listParameters: ReadonlySet<string> = new Set([
  'x-id',
  'uploads',
  'list-type',
  'prefix',
  'max-keys',
  'max-uploads',
  'continuation-token',
  'start-after',
  'key-marker',
  'upload-id-marker',
  'encoding-type',
  'fetch-owner',
])
const objectMethods: ReadonlySet<string> = new Set(['GET', 'HEAD', 'PUT', 'POST', 'DELETE'])
/** Name of the object with which a runtime checks the storage at its start. */
const probe = /^probe-[0-9a-f-]{36}$/

/**
 * Whether a request, with the bucket in its path, reads or writes nothing but files of the tenant.
 * @param url path and query
 * @param headers names in lower case
 */
export function isTenantsRequest(
  { method, url, headers }: { method: string; url: string; headers: Readonly<Record<string, unknown>> },
  { bucket, prefix }: BucketPart,
  tenantId: string,
): boolean {
  // A copy would read another object.
  if (Object.keys(headers).some((name) => name.startsWith('x-amz-copy-source'))) return false
  const [path = '', query = '', ...rest] = url.split('?')
  if (rest.length > 0 || url.includes('#')) return false
  // The bucket is not encoded, so that the part after it can be passed on.
  if (path !== `/${bucket}` && !path.startsWith(`/${bucket}/`)) return false
  const name = decoded(path)
  const parameters = new URLSearchParams(query)
  if (name === undefined) return false
  const isOwn = (key: string) =>
    (key.startsWith(`${prefix}${tenantId}/`) || (key.startsWith(prefix) && probe.test(key.slice(prefix.length)))) &&
    !key.split('/').some((segment) => segment === '.' || segment === '..')
  const key = name.slice(`/${bucket}/`.length)
  if (key !== '')
    return (
      name.startsWith(`/${bucket}/`) &&
      objectMethods.has(method) &&
      isOwn(key) &&
      [...parameters.keys()].every((parameter) => objectParameters.has(parameter))
    )
  const prefixes = parameters.getAll('prefix')
  return (
    method === 'GET' &&
    (name === `/${bucket}` || name === `/${bucket}/`) &&
    (parameters.get('list-type') === '2' || parameters.has('uploads')) &&
    prefixes.length === 1 &&
    prefixes.every(isOwn) &&
    [...parameters.keys()].every((parameter) => listParameters.has(parameter))
  )
}

/** Decodes a path; undefined if it is not encoded correctly. */
function decoded(path: string): string | undefined {
  try {
    return decodeURIComponent(path)
  } catch {
    return undefined
  }
}
