// Opens the configured backend, or the pair of backends between which blobs move.
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
  /** The backend of blobs that are not moved to `backend` yet. */
  fallback: BackendName | undefined
  /** Defined if one of the two is `s3`. */
  s3: S3Settings | undefined
}

/** Checks the name of a backend. @throws Error for an unknown name, so that files are never stored in the wrong backend */
export function backendName(variable: string, name: string): BackendName {
  const known = backendNames.find((backend) => backend === name)
  if (known === undefined)
    throw new Error(`Invalid ${variable} ${JSON.stringify(name.slice(0, 100))}. Allowed: ${backendNames.join(', ')}.`)
  return known
}

/** Opens the configured backend. @param data the runtime's directory */
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
  if (s3 === undefined) throw new Error('The storage backend s3 has no settings.')
  // The SDK takes as long to load as the rest of the runtime, so it is loaded only if it is used.
  const { S3Backend } = await import('./s3.ts')
  return new S3Backend(s3)
}
