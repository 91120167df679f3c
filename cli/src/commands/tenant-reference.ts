// Finds a tenant by the name or the ID that the user typed.
import { bodyOf, type ControlClient, type Tenant } from '@tenantry/client'
import { CommandError, exitCodes } from '../terminal/exit-codes.ts'
import { printable } from '../terminal/table.ts'

const idPattern = /^t_[0-9a-f]{20}$/

/** Returns the tenant of a name or an ID. @throws CommandError if no tenant has that name, ApiError for an unknown ID */
export async function findTenant(client: ControlClient, reference: string): Promise<Tenant> {
  if (idPattern.test(reference))
    return bodyOf(await client.GET('/v1/tenants/{id}', { params: { path: { id: reference } } }))
  let cursor: string | undefined
  do {
    const query = { name_prefix: reference, limit: '1000', ...(cursor === undefined ? {} : { cursor }) }
    const page = bodyOf(await client.GET('/v1/tenants', { params: { query } }))
    const found = page.tenants.find(({ name }) => name === reference)
    if (found !== undefined) return found
    cursor = page.next_cursor ?? undefined
  } while (cursor !== undefined)
  throw new CommandError(`There is no tenant "${printable(reference.slice(0, 100))}".`, exitCodes.notFound)
}

/** Returns the ID of a tenant. An ID is not read again, so that commands work for what remains of purged tenants. */
export async function findTenantId(client: ControlClient, reference: string): Promise<string> {
  return idPattern.test(reference) ? reference : (await findTenant(client, reference)).tenant_id
}
