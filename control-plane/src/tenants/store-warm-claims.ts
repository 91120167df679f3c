// Tenants that were created in advance: a create request claims one, and the others are not visible to any client.
import type { Seal } from '../platform/seal.ts'
import { secretKinds, type SecretKind } from './tenant.ts'
import type { NewTenant, TenantCreated } from './tenant-write.ts'
import type { Database, Transaction } from '../platform/database.ts'
import { liveSecrets } from './live-secrets.ts'
import { incrementGeneration } from './store-raise.ts'
import { fromOwnRate } from '../quotas/index.ts'

/** Claims the oldest ready one as the new tenant: its home is empty, and no client has received its secrets. */
export async function claimWarm(
  transaction: Transaction,
  seal: Seal,
  tenant: NewTenant,
  at: Date,
): Promise<TenantCreated | undefined> {
  const [warm] = await transaction.$queryRaw<{ id: string }[]>`
    select id from tenants
    where desired = 'warm' and status = 'warm' and region_id = ${tenant.region} and isolation = ${tenant.isolation}
    order by created_at, id limit 1 for update skip locked`
  if (warm === undefined) return undefined
  const columns = {
    name: tenant.name,
    planId: tenant.plan,
    ...fromOwnRate(tenant.rateLimit ?? null),
    desired: 'active',
    status: 'pending',
    createdAt: at,
    // A shared home responds already, so that runtimes and gateways take it over while the reconciler begins. The client receives
    // the tenant once they have.
    ...(tenant.isolation === 'schema-per-tenant' ? { routePhase: 'ready' } : {}),
  }
  const write = await incrementGeneration(transaction, warm.id, 'create', columns, at)
  return { ...write, secrets: await secretsOf(transaction, seal, warm.id, at) }
}

async function secretsOf(
  transaction: Transaction,
  seal: Seal,
  tenantId: string,
  at: Date,
): Promise<Record<SecretKind, string>> {
  const rows = await transaction.tenantSecret.findMany({ where: { tenantId }, orderBy: { createdAt: 'desc' } })
  const { texts } = liveSecrets(tenantId, rows, seal, at)
  const newest = (kind: SecretKind) => {
    const [text] = texts[kind]
    if (text === undefined) throw new Error(`The tenant ${tenantId} was created in advance without a ${kind}.`)
    return [kind, text]
  }
  return Object.fromEntries(secretKinds.map(newest)) as Record<SecretKind, string>
}

/** Returns the IDs of unclaimed tenants, those in deletion included. */
export async function unclaimed(database: Database): Promise<string[]> {
  const rows = await database.$queryRaw<{ id: string }[]>`
    select id from tenants where desired in ('warm', 'deleted') and name = 'warm-' || substr(id, 3)`
  return rows.map(({ id }) => id)
}
