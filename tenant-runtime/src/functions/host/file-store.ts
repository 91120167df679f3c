// The interface to the tenant's files for functions. The storage module implements it.
import type { RlsContext } from '../../tenancy/rls-context.ts'
import type { Tenant } from '../../tenancy/tenant.ts'

/**
 * A tenant's files. A `target` is `bucket/path/in/it`. All methods throw a RuntimeError if the file does not exist or the
 * caller lacks the permission.
 */
export interface FileStore {
  /** Reads a file of at most `maxBytes`. */
  get(tenant: Tenant, context: RlsContext, target: string, maxBytes: number): Promise<Buffer>
  /** Writes a file. @returns the object, in the form of an upload's response */
  put(tenant: Tenant, context: RlsContext, target: string, contentType: string, bytes: Buffer): Promise<object>
  remove(tenant: Tenant, context: RlsContext, target: string): Promise<void>
}
