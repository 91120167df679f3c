// Errors of storage: denials, which name who has the permission, and the storage errors for those of Postgres.
import type { ErrorMap } from '../database/database-error.ts'
import { RuntimeError } from '../errors.ts'
import type { Policy } from './buckets/bucket.ts'

/** Text by which clients recognise a denial. The roles with the permission follow it. */
const violates = 'new row violates row-level security policy'

/** The error for an upload into another user's bucket. */
export function uploadDenied(policy: Policy): RuntimeError {
  return new RuntimeError(
    'ACCESS_DENIED',
    `${violates}: only the bucket's owner or the service role may upload into a ${policy} bucket`,
  )
}

/** The error for a change of another user's object. */
export function objectDenied(what: 'overwrite' | 'delete' | 'move'): RuntimeError {
  return new RuntimeError(
    'ACCESS_DENIED',
    `${violates}: only the object's owner in an authenticated bucket, the bucket's owner or the service role may ${what} it`,
  )
}

/** The error for a change of another user's bucket. */
export function bucketDenied(what: 'change' | 'empty' | 'delete'): RuntimeError {
  return new RuntimeError('ACCESS_DENIED', `${violates}: only the bucket's owner or the service role may ${what} it`)
}

export const storageErrors: ErrorMap = {
  bucket_name_taken: (cause) => new RuntimeError('BUCKET_EXISTS', 'The resource already exists', { cause }),
  object_path_taken: (cause) => new RuntimeError('KeyAlreadyExists', 'The resource already exists', { cause }),
  '42501': (cause) =>
    new RuntimeError(
      'ACCESS_DENIED',
      `${violates}: only the object's owner in an authenticated bucket, the bucket's owner or the service role may write here`,
      { cause },
    ),
  // The bucket was deleted during the upload.
  '23503': (cause) => new RuntimeError('NoSuchBucket', 'Bucket not found', { cause }),
  TS404: (cause) => new RuntimeError('NoSuchBucket', 'Bucket not found', { cause }),
  TS413: (cause) => new RuntimeError('FILE_TOO_LARGE', 'The object exceeded the maximum allowed size', { cause }),
  TS415: (cause) => new RuntimeError('MIME_NOT_ALLOWED', 'The bucket does not allow this media type.', { cause }),
}
