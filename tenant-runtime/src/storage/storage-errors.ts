// Denials, which say who may; and what Postgres says of a storage statement, in storage's own words.
import type { ErrorMap } from '../database/database-error.ts'
import { RuntimeError } from '../errors.ts'
import type { Policy } from './buckets/bucket.ts'

/** What clients look for in a denial; who may do it stands behind. */
const violates = 'new row violates row-level security policy'

/** Uploading into a bucket that is not the caller's. */
export function uploadDenied(policy: Policy): RuntimeError {
  return new RuntimeError(
    'ACCESS_DENIED',
    `${violates}: only the bucket's owner or the service role may upload into a ${policy} bucket`,
  )
}

/** Changing an object of somebody else's. */
export function objectDenied(what: 'overwrite' | 'delete' | 'move'): RuntimeError {
  return new RuntimeError(
    'ACCESS_DENIED',
    `${violates}: only the object's owner in an authenticated bucket, the bucket's owner or the service role may ${what} it`,
  )
}

/** Changing, emptying or deleting a bucket of somebody else's. */
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
  // The bucket was deleted while the object was on its way into it.
  '23503': (cause) => new RuntimeError('NoSuchBucket', 'Bucket not found', { cause }),
  TS404: (cause) => new RuntimeError('NoSuchBucket', 'Bucket not found', { cause }),
  TS413: (cause) => new RuntimeError('FILE_TOO_LARGE', 'The object exceeded the maximum allowed size', { cause }),
  TS415: (cause) => new RuntimeError('MIME_NOT_ALLOWED', 'the bucket does not allow this mime type', { cause }),
}
