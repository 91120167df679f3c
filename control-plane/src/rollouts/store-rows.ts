// Rows of rollouts as the values the rest of the control plane knows, and back.
import { Type, type Static } from 'typebox'
import { Value } from 'typebox/value'
import type { Rollout as RolloutRow } from '../../../prisma/client/client.ts'
import type { MovedTenant, Rollout, RolloutComponent, RolloutState } from './rollout.ts'

const Entry = Type.Object({
  tenant_id: Type.String(),
  from: Type.String(),
  wave: Type.Integer(),
  state: Type.Enum(['moving', 'moved', 'returning', 'returned', 'lost', 'gone']),
  generation: Type.Integer(),
  moved_at: Type.String(),
  well_since: Type.Union([Type.String(), Type.Null()]),
})
const Entries = Type.Array(Entry)

/** @throws Error for entries in an unknown form: to go on without them would be to leave tenants behind */
export function toRollout(row: RolloutRow): Rollout {
  if (!Value.Check(Entries, row.tenants)) throw new Error(`the rollout ${row.id} holds tenants in an unknown form`)
  return {
    id: row.id,
    region: row.regionId,
    // Check constraints hold these two to their values.
    component: row.component as RolloutComponent,
    state: row.state as RolloutState,
    image: row.image,
    imageId: row.imageId,
    canary: row.canary ?? undefined,
    waveSize: row.waveSize,
    soakSeconds: row.soakSeconds,
    deadlineSeconds: row.deadlineSeconds,
    wave: row.wave,
    tenants: row.tenants.map(toMoved),
    error: row.error ?? undefined,
    createdAt: row.createdAt,
    finishedAt: row.finishedAt ?? undefined,
  }
}

function toMoved({
  tenant_id: tenantId,
  moved_at: movedAt,
  well_since: wellSince,
  ...entry
}: Static<typeof Entry>): MovedTenant {
  return {
    ...entry,
    tenantId,
    movedAt: new Date(movedAt),
    wellSince: wellSince === null ? undefined : new Date(wellSince),
  }
}

export function fromMoved({ tenantId, movedAt, wellSince, ...entry }: MovedTenant): Static<typeof Entry> {
  return {
    ...entry,
    tenant_id: tenantId,
    moved_at: movedAt.toISOString(),
    well_since: wellSince?.toISOString() ?? null,
  }
}
