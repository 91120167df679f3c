// Lists operations from the control database.
import type { KeyLimit } from '../keys/index.ts'
import { afterPosition, beforePosition, decodeCursor, toPage } from '../platform/cursor.ts'
import { Prisma } from '../../../prisma/client/client.ts'
import type { Database } from '../platform/database.ts'
import type { Page, PageRequest } from '../platform/page.ts'
import { uuidPattern } from '../platform/uuid.ts'
import { toOperation } from './store-rows.ts'
import type { Operation, OperationKind } from './tenant.ts'

/** Fields of the operations to list. */
export interface OperationFilter {
  tenantId?: string
  kind?: OperationKind
  state?: Operation['state']
}

export type ListOrder = 'oldest' | 'newest'

/** Lists operations that match every given field and that a key may see, the oldest or the newest first. */
export async function listOperations(
  database: Database,
  filter: OperationFilter,
  keyLimit: KeyLimit,
  { limit, cursor }: PageRequest,
  order: ListOrder,
): Promise<Page<Operation>> {
  const isOldestFirst = order === 'oldest'
  const last = cursor === undefined ? undefined : decodeCursor(cursor, uuidPattern)
  const direction = isOldestFirst ? ('asc' as const) : ('desc' as const)
  const orderBy = [{ createdAt: direction }, { id: direction }]
  const { region, tenantId } = keyLimit
  if (region === undefined) {
    const where = {
      ...filter,
      AND: tenantId === undefined ? {} : { tenantId },
      ...(last === undefined ? {} : (isOldestFirst ? afterPosition : beforePosition)(last)),
    }
    return toPage(await database.operation.findMany({ where, orderBy, take: limit + 1 }), limit, toOperation)
  }
  const [beyond, sorting] = isOldestFirst ? [Prisma.sql`>`, Prisma.sql`asc`] : [Prisma.sql`<`, Prisma.sql`desc`]
  // Operations outlive their tenants, so they have no relation that Prisma could follow.
  const found = await database.$queryRaw<{ id: string }[]>`
    select o.id from operations o join tenants t on t.id = o.tenant_id
    where t.region_id = ${region}
      and (${filter.tenantId ?? null}::text is null or o.tenant_id = ${filter.tenantId ?? null})
      and (${filter.kind ?? null}::text is null or o.kind = ${filter.kind ?? null})
      and (${filter.state ?? null}::text is null or o.state = ${filter.state ?? null})
      and (${last?.id ?? null}::uuid is null
        or (o.created_at, o.id) ${beyond} (${last?.createdAt ?? null}::timestamptz, ${last?.id ?? null}::uuid))
    order by o.created_at ${sorting}, o.id ${sorting} limit ${limit + 1}`
  const ids = found.map(({ id }) => id)
  return toPage(await database.operation.findMany({ where: { id: { in: ids } }, orderBy }), limit, toOperation)
}
