// What Postgres says of a storage statement, in storage's own words.
import type { ErrorMap } from '../database/database-error.ts'
import { RuntimeError } from '../errors.ts'

export const storageErrors: ErrorMap = {
  bucket_name_taken: (cause) => new RuntimeError('BUCKET_EXISTS', 'The resource already exists', { cause }),
  object_path_taken: (cause) => new RuntimeError('KeyAlreadyExists', 'The resource already exists', { cause }),
  '42501': (cause) => new RuntimeError('ACCESS_DENIED', 'new row violates row-level security policy: only the owner may write here', { cause }),
  TS404: (cause) => new RuntimeError('NoSuchBucket', 'Bucket not found', { cause }),
  TS413: (cause) => new RuntimeError('FILE_TOO_LARGE', 'The object exceeded the maximum allowed size', { cause }),
  TS415: (cause) => new RuntimeError('MIME_NOT_ALLOWED', 'the bucket does not allow this mime type', { cause }),
}
