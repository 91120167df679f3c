// Whether what a tenant has stored fits into another plan (specification, section 8).
import { ControlError } from '../platform/errors.ts'
import type { Plan } from '../plans/index.ts'
import type { Tenant } from './tenant.ts'

interface Misfit {
  resource: 'documents' | 'files'
  /** Bytes. */
  stored: number
  limit: number
}

/** What a plan has no room for; to the byte. */
export function misfits(stored: Stored, plan: Plan): Misfit[] {
  const all = [
    { resource: 'documents', stored: stored.documentBytes, limit: plan.documentBytes },
    { resource: 'files', stored: stored.fileBytes, limit: plan.fileBytes },
  ] as const
  return all.flatMap(({ resource, stored: bytes, limit }) =>
    limit === null || bytes <= limit ? [] : [{ resource, stored: bytes, limit }],
  )
}

/**
 * A plan with as much room as the present one always fits; for another it must be known what is stored.
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
      `what the tenant has stored cannot be asked of its runtime now, so it is not known whether plan "${to.id}" has room for it`,
    )
  }
  const found = misfits(stored, to)
  if (found.length === 0) return
  const reasons = found.map(({ resource, stored: bytes, limit }) => `${resource} take ${bytes} of ${limit} bytes`)
  throw new ControlError('PLAN_TOO_SMALL', `plan "${to.id}" has no room for what is stored: ${reasons.join(', ')}`, {
    detail: { misfits: found },
  })
}

export interface Stored {
  documentBytes: number
  fileBytes: number
}

/** Undefined when no runtime of the tenant can say. */
export type StoredReader = (tenant: Tenant) => Promise<Stored | undefined>
