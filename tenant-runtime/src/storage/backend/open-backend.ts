// The backend by its configured name.
import type { BlobBackend } from './backend.ts'
import { LocalBackend } from './local.ts'

/** @throws Error for an unknown name: a service that quietly stores elsewhere would be worse than none */
export function openBackend(name: string, directory: string): BlobBackend {
  if (name === 'local') return new LocalBackend(directory)
  throw new Error(`unknown storage backend "${name}"; known: local`)
}
