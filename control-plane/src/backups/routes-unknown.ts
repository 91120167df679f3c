// The bodies of backups that the control database does not know.
import { Type, type Static } from 'typebox'
import type { UnknownBackup } from './unknown-backups.ts'
import { ControlError } from '../platform/errors.ts'
import type { PageRequest } from '../platform/page.ts'
import { isUuid } from '../platform/uuid.ts'

const Maybe = Type.Union([Type.String(), Type.Null()])

export const UnknownBackupBody = Type.Object({
  id: Type.String(),
  state: Type.Literal('unknown'),
  tenant_id: Maybe,
  tenant_name: Maybe,
  plan: Maybe,
  isolation: Maybe,
  region: Maybe,
  bytes: Type.Union([Type.Integer(), Type.Null()]),
  manifest_sha256: Maybe,
  created: Maybe,
  finished: Maybe,
  adoptable: Type.Boolean(),
  problem: Type.Union([Type.Object({ code: Type.String(), message: Type.String() }), Type.Null()], {
    description: "Why the backup can't be adopted",
  }),
})

export function toUnknownBackupBody({ id, record }: UnknownBackup): Static<typeof UnknownBackupBody> {
  const { description, error } = record
  return {
    id,
    state: 'unknown',
    tenant_id: description?.tenant_id ?? null,
    tenant_name: description?.tenant_name ?? null,
    plan: description?.plan ?? null,
    isolation: description?.isolation ?? null,
    region: description?.region ?? null,
    bytes: description?.bytes ?? null,
    manifest_sha256: description?.manifest_sha256 ?? null,
    created: description?.created_at ?? null,
    finished: description?.finished_at ?? null,
    adoptable: error === undefined,
    problem: error ?? null,
  }
}

/**
 * Returns a page of IDs in their order. The cursor is the last ID of the page before.
 * @throws ControlError INVALID_PARAMETER
 */
export function pageOfIds(
  ids: readonly string[],
  { limit, cursor }: PageRequest,
): { ids: string[]; next_cursor: string | null } {
  const last = cursor === undefined ? '' : Buffer.from(cursor, 'base64url').toString()
  if (cursor !== undefined && !isUuid(last))
    throw new ControlError('INVALID_PARAMETER', 'Invalid cursor. It must be the "next_cursor" of an earlier page.')
  const remaining = ids.filter((id) => id > last).sort()
  const page = remaining.slice(0, limit)
  return {
    ids: page,
    next_cursor: remaining.length > limit ? Buffer.from(page.at(-1) ?? '').toString('base64url') : null,
  }
}
