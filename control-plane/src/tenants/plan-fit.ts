// Compares a tenant's stored bytes with another plan's quotas (specification, section 8).
import { ControlError } from '../platform/errors.ts'
import type { Plan } from '../plans/index.ts'
import type { Tenant } from './tenant.ts'

interface Misfit {
  resource: 'documents' | 'files'
  /** Stored bytes. */
  stored: number
  limit: number
}

/** Returns the quotas of a plan that a tenant's stored bytes exceed. */
export function misfits(stored: StoredBytes, plan: Plan): Misfit[] {
  const all = [
    { resource: 'documents', stored: stored.documentBytes, limit: plan.documentBytes },
    { resource: 'files', stored: stored.fileBytes, limit: plan.fileBytes },
  ] as const
  return all.flatMap(({ resource, stored: bytes, limit }) =>
    limit === null || bytes <= limit ? [] : [{ resource, stored: bytes, limit }],
  )
}
/**
 * Checks that a tenant fits into a plan. A plan whose quotas are not lower always fits; otherwise the stored bytes must
 * be known.
 * @throws ControlError PLAN_TOO_SMALL with `misfits`, STORED_UNKNOWN
 */
export async function checkPlanFits(
  read: StoredReader,
  tenant: Tenant,
  from: Plan | undefined,
  to: Plan,
): Promise<void> {
  const isSmaller = (before: number | null | undefined, after: number | null) =>
    after !== null && (before == null || after < before)
  if (!isSmaller(from?.documentBytes, to.documentBytes) && !isSmaller(from?.fileBytes, to.fileBytes)) return
  const stored = await read(tenant)
  if (stored === undefined) {
    throw new ControlError(
      'STORED_UNKNOWN',
      `The tenant's runtime cannot report its stored bytes, so they cannot be compared with the quotas of the plan "${to.id}".`,
    )
  }
  const found = misfits(stored, to)
  if (found.length === 0) return
  const reasons = found.map(({ resource, stored: bytes, limit }) => `${resource} use ${bytes} of ${limit} bytes`)
  throw new ControlError(
    'PLAN_TOO_SMALL',
    `The plan "${to.id}" is too small for the tenant's stored bytes: ${reasons.join(', ')}.`,
    {
      detail: { misfits: found },
    },
  )
}

export interface StoredBytes {
  documentBytes: number
  fileBytes: number
}

/** Reads a tenant's stored bytes; undefined if none of its runtimes reports them. */
export type StoredReader = (tenant: Tenant) => Promise<StoredBytes | undefined>
