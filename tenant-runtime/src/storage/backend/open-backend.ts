// The backend by its configured name, and the two of a move.
import { join } from 'node:path'
import type { StorageFailpoint } from '../failpoints.ts'
import type { BlobBackend } from './backend.ts'
import { LocalBackend } from './local.ts'
import { PairedBackend } from './paired.ts'
import type { S3Settings } from './s3-connection.ts'

const backendNames = ['local', 's3'] as const
export type BackendName = (typeof backendNames)[number]

export interface StorageSettings {
  backend: BackendName
  /** Where blobs are looked for that are not moved to `backend` yet. */
  fallback: BackendName | undefined
  /** There when one of the two is `s3`. */
  s3: S3Settings | undefined
}

/** @throws Error for an unknown name: a service that quietly stores elsewhere would be worse than none */
export function backendName(variable: string, name: string): BackendName {
  const known = backendNames.find((backend) => backend === name)
  if (known === undefined)
    throw new Error(
      `${variable} is ${JSON.stringify(name)}: unknown storage backend; want one of ${backendNames.join(', ')}`,
    )
  return known
}

/** @param data the runtime's directory */
export async function openBackend(
  settings: StorageSettings,
  data: string,
  failpoint?: StorageFailpoint,
): Promise<BlobBackend> {
  const primary = await open(settings.backend, settings, data, failpoint)
  return settings.fallback === undefined
    ? primary
    : new PairedBackend(primary, await open(settings.fallback, settings, data, failpoint))
}

async function open(
  name: BackendName,
  { s3 }: StorageSettings,
  data: string,
  failpoint: StorageFailpoint | undefined,
): Promise<BlobBackend> {
  if (name === 'local') return new LocalBackend(join(data, 'blobs'), { failpoint })
  if (s3 === undefined) throw new Error('the storage backend s3 has no settings')
  // Its SDK takes as long to load as the rest of the runtime: only those wait who use it.
  const { S3Backend } = await import('./s3.ts')
  return new S3Backend(s3)
}
