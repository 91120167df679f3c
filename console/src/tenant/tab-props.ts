// The properties of a tenant's tabs.
import type { Tenant } from '../api/types.ts'

/** The properties of every tab: the tenant, its ETag, and a function that loads it again. */
export interface TabProps {
  tenant: Tenant
  etag: string | undefined
  reload: () => void
}
