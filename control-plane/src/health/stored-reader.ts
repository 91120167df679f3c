// Reads the bytes that a tenant stores at present.
import { storedNow, type StoredNowDeps } from './stored-now.ts'
import { statusSourceOf, type StatusDeps } from './tenant-status-source.ts'
import type { StoredReader } from '../tenants/index.ts'

/** Creates the reader of a tenant's present storage, in bytes. It returns undefined when no runtime responds. */
export function createStoredReader(deps: StatusDeps & StoredNowDeps): StoredReader {
  return async (tenant) => {
    const usage = await storedNow(deps, await statusSourceOf(deps, tenant))
    return usage && { documentBytes: usage.document_bytes, fileBytes: usage.file_bytes }
  }
}
