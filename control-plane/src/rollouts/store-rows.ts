// Converts rows of rollouts to the types of the control plane, and back.
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

/** Converts a row. @throws Error for tenants in an unknown form, which would otherwise be left behind */
export function toRollout(row: RolloutRow): Rollout {
  if (!Value.Check(Entries, row.tenants))
    throw new Error(`The tenants of the rollout ${row.id} are stored in an unknown form.`)
  return {
    id: row.id,
    region: row.regionId,
    // Check constraints limit these two columns to their values.
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
