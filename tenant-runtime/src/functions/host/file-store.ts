// The tenant's files, as functions need them; the storage area has them.
import type { RlsContext } from '../../tenancy/rls-context.ts'
import type { Tenant } from '../../tenancy/tenant.ts'

/** `target` is `bucket/path/in/it`. Each throws RuntimeErrors for what the caller may not do, or is not there. */
export interface FileStore {
  /** At most `maxBytes`. */
  get(tenant: Tenant, context: RlsContext, target: string, maxBytes: number): Promise<Buffer>
  /** @returns the object, as an upload over HTTP shows it */
  put(tenant: Tenant, context: RlsContext, target: string, contentType: string, bytes: Buffer): Promise<object>
  remove(tenant: Tenant, context: RlsContext, target: string): Promise<void>
}
