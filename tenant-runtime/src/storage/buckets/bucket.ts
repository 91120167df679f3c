// A bucket (specification, section 2.1): its rules and its JSON forms. Pure.
import { RuntimeError } from '../../errors.ts'
import type { Row } from '../../database/statement.ts'

export const policies = ['public', 'private', 'authenticated'] as const
export type Policy = (typeof policies)[number]

export interface BucketConfig {
  allowed_mime_types: string[]
  /** Bytes; 0 means that the bucket has no limit of its own. */
  max_file_size: number
}

export interface Bucket {
  id: string
  name: string
  ownerId: string | null
  policy: Policy
  config: BucketConfig
  createdAt: string
  updatedAt: string
  fileCount: number
  totalSize: number
  /** The version that signed URLs of the bucket must have. */
  signingVersion: number
}

export const bucketColumns =
  'b.id, b.name, b.owner_id, b.policy, b.config, b.created_at, b.updated_at, b.signing_version,' +
  ' coalesce(c.file_count, 0) as file_count, coalesce(c.total_size, 0) as total_size'
export const bucketSource = 'storage_buckets b left join storage_bucket_counters c on c.bucket_id = b.id'

export function toBucket(row: Row): Bucket {
  // The table's columns and checks ensure these types.
  return {
    id: String(row['id']),
    name: String(row['name']),
    ownerId: row['owner_id'] as string | null,
    policy: row['policy'] as Policy,
    config: row['config'] as BucketConfig,
    createdAt: String(row['created_at']),
    updatedAt: String(row['updated_at']),
    fileCount: Number(row['file_count']),
    totalSize: Number(row['total_size']),
    signingVersion: Number(row['signing_version']),
  }
}

/** @throws RuntimeError INVALID_BUCKET_NAME with the reason (specification, section 7) */
export function checkBucketName(name: string): void {
  if (name.length < 3 || name.length > 63)
    throw new RuntimeError('INVALID_BUCKET_NAME', "The bucket name's length must be 3-63 characters.")
  if (!/^[a-z0-9][a-z0-9-]*[a-z0-9]$/.test(name)) {
    throw new RuntimeError(
      'INVALID_BUCKET_NAME',
      'The bucket name has invalid characters. Allowed: a-z, 0-9 and hyphens, with no hyphen at either end.',
    )
  }
}

/** Validates allowed media types. @throws RuntimeError INVALID_BUCKET */
export function checkMimeTypes(types: string[]): string[] {
  for (const type of types) {
    if (!/^[\w!#$&^.+-]+\/(?:\*|[\w!#$&^.+-]+)$/.test(type))
      throw new RuntimeError(
        'INVALID_BUCKET',
        `Invalid media type "${type.slice(0, 100)}" in "allowed_mime_types". Allowed: type/subtype, type/*.`,
      )
  }
  return types
}

/** Whether a bucket accepts a media type (specification, section 2.1, MIME matching rules). */
export function allowsType({ allowed_mime_types: allowed }: BucketConfig, contentType: string): boolean {
  if (allowed.length === 0) return true
  return allowed.some((entry) =>
    entry.endsWith('/*') ? contentType.startsWith(entry.slice(0, -1)) : entry === contentType,
  )
}

/** Parses a number of bytes, or a text such as `20MB` (decimal units). @returns bytes; 0 for null, which means no limit */
export function parseSize(value: number | string | null, field: string): number {
  if (value === null) return 0
  if (typeof value === 'number') {
    if (Number.isSafeInteger(value) && value >= 0) return value
  } else {
    const match = /^(\d+(?:\.\d+)?)\s*(b|kb|mb|gb)?$/i.exec(value.trim())
    const unit = { b: 1, kb: 1e3, mb: 1e6, gb: 1e9 }[(match?.[2] ?? 'b').toLowerCase()]
    const bytes = Math.round(Number(match?.[1]) * (unit ?? Number.NaN))
    if (Number.isSafeInteger(bytes)) return bytes
  }
  throw new RuntimeError(
    'INVALID_BUCKET',
    `Field "${field}" must be a whole number of bytes, or a text such as "20MB".`,
  )
}

/** The full record, with the field names of storage clients alongside the specification's. */
export function presentBucket(bucket: Bucket) {
  return {
    id: bucket.id,
    name: bucket.name,
    owner_id: bucket.ownerId,
    policy: bucket.policy,
    config: bucket.config,
    created_at: bucket.createdAt,
    updated_at: bucket.updatedAt,
    ...presentAliases(bucket),
  }
}

function presentAliases({ policy, ownerId, config }: Bucket) {
  return {
    public: policy === 'public',
    owner: ownerId ?? '',
    file_size_limit: config.max_file_size === 0 ? null : config.max_file_size,
    allowed_mime_types: config.allowed_mime_types.length === 0 ? null : config.allowed_mime_types,
    type: 'STANDARD',
  }
}

export function presentBucketWithCounts(bucket: Bucket) {
  return { ...presentBucket(bucket), file_count: bucket.fileCount, total_size: bucket.totalSize }
}

/** Items of the list carry neither owner nor config (specification, section 4.1). */
export function presentBucketItem({ id, name, policy, fileCount, totalSize, createdAt, updatedAt }: Bucket) {
  return {
    id,
    name,
    policy,
    file_count: fileCount,
    total_size: totalSize,
    public: policy === 'public',
    created_at: createdAt,
    updated_at: updatedAt,
  }
}
