// Lists tenants: filters, the search for a part of a name, and pages.
import type { KeyLimit } from '../keys/index.ts'
import { afterPosition, decodeCursor, toPage } from '../platform/cursor.ts'
import type { Database, Prisma } from '../platform/database.ts'
import type { Page, PageRequest } from '../platform/page.ts'
import { shownTenant, withPlan } from './store-raise.ts'
import { unclaimed } from './store-warm-claims.ts'
import type { Status, Tenant } from './tenant.ts'

/** The filters of a list of tenants. */
export interface TenantFilter {
  plan?: string
  region?: string
  status?: Status
  namePrefix?: string
  /** Part of a name, or a whole ID. */
  search?: string
}

const tenantIds = /^t_[0-9a-f]{20}$/

/** Lists tenants that match every given field and that a key may see, the oldest first. */
export async function listTenants(
  database: Database,
  filter: TenantFilter,
  keyLimit: KeyLimit,
  { limit, cursor }: PageRequest,
): Promise<Page<Tenant>> {
  const { plan, region, status, namePrefix, search } = filter
  const where = {
    AND: [
      keyLimit.tenantId === undefined ? {} : { id: keyLimit.tenantId },
      keyLimit.region === undefined ? {} : { regionId: keyLimit.region },
      plan === undefined ? {} : { planId: plan },
      region === undefined ? {} : { regionId: region },
      status === undefined ? {} : { status: status satisfies Status },
      namePrefix === undefined ? {} : { name: { startsWith: escapedPattern(namePrefix) } },
      search === undefined ? {} : { OR: [{ name: { contains: escapedPattern(search) } }, { id: search }] },
      cursor === undefined ? {} : afterPosition(decodeCursor(cursor, tenantIds)),
    ],
    id: { notIn: await unclaimed(database) },
  }
  const page = {
    orderBy: [{ createdAt: 'asc' }, { id: 'asc' }],
    take: limit + 1,
  } satisfies Prisma.TenantFindManyArgs
  if (search === undefined)
    return toPage(await database.tenant.findMany({ where, ...page, include: withPlan }), limit, shownTenant)
  // An index has everything that a search compares, so that Postgres does not read the rows of all tenants.
  const found = await database.tenant.findMany({ where, ...page, select: { id: true } })
  const rows = await database.tenant.findMany({
    where: { id: { in: found.map(({ id }) => id) } },
    orderBy: page.orderBy,
    include: withPlan,
  })
  return toPage(rows, limit, shownTenant)
}

/** Escapes a text for LIKE, because Prisma escapes nothing. */
function escapedPattern(text: string): string {
  return text.replaceAll(/[\\%_]/g, '\\$&')
}
