// What a tenant has stored now, as its runtime counts it.
import { storedNow, type StoredNowDeps } from './stored-now.ts'
import { statusSourceOf, type StatusDeps } from './tenant-sight.ts'
import type { StoredReader } from '../tenants/index.ts'

/** Makes the reader of what a tenant has stored now, in bytes; it gives undefined when no runtime can say. */
export function createStoredReader(deps: StatusDeps & StoredNowDeps): StoredReader {
  return async (tenant) => {
    const usage = await storedNow(deps, await statusSourceOf(deps, tenant))
    return usage && { documentBytes: usage.document_bytes, fileBytes: usage.file_bytes }
  }
}
