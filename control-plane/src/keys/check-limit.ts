// Applies the limit of a platform key to a request. What another tenant or region has does not exist for a limited key.
import { isTenantId } from '@tenantry/contract'
import type { FastifyRequest } from 'fastify'
import { isUuid } from '../platform/uuid.ts'
import { ControlError, tenantNotFound } from '../platform/errors.ts'
import { isLimited, limitText } from './key-rights.ts'
import type { LimitedAccess } from './limited-access.ts'
import type { KeyLimit } from './platform-key.ts'
import type { KeySubjects } from './store-subjects.ts'

/** Returns the tenant or the region that the caller's key is limited to; empty for an unlimited key. */
export function limitOf(request: Pick<FastifyRequest, 'platformKey'>): KeyLimit {
  return request.platformKey?.limit ?? {}
}

/**
 * Rejects a request of a limited key for a route or an object that it may not use.
 * @throws ControlError KEY_LIMITED; TENANT_NOT_FOUND, OPERATION_NOT_FOUND, BACKUP_NOT_FOUND, ROLLOUT_NOT_FOUND or
 * NOT_FOUND for an object of others
 */
export async function checkLimit(
  limit: KeyLimit,
  access: LimitedAccess,
  id: string,
  subjects: KeySubjects,
): Promise<void> {
  if (!isLimited(limit)) return
  const maySeeTenant = async (tenantId: string | undefined) => {
    if (limit.tenantId !== undefined) return tenantId === limit.tenantId
    return tenantId !== undefined && (await subjects.regionOfTenant(tenantId)) === limit.region
  }
  switch (access) {
    case 'every key':
    case 'list':
    case 'keys':
      return
    case 'unlimited keys only':
      throw keyLimited(limit)
    case 'tenant':
    case 'tenant, in its region':
    case 'tenant, with a target':
      if (!isTenantId(id) || !(await maySeeTenant(id))) throw tenantNotFound()
      return
    case 'operation':
      if (!isUuid(id) || !(await maySeeTenant(await subjects.tenantOfOperation(id))))
        throw new ControlError('OPERATION_NOT_FOUND', 'There is no such operation.')
      return
    case 'backup':
    case 'backup, with a target':
      if (!isUuid(id) || !(await maySeeTenant(await subjects.tenantOfBackup(id))))
        throw new ControlError('BACKUP_NOT_FOUND', 'There is no such backup.')
      return
  }
  if (limit.tenantId !== undefined) throw keyLimited(limit)
  switch (access) {
    case 'list of the region':
    case 'region in the body':
      return
    case 'rollout':
      if (!isUuid(id) || (await subjects.regionOfRollout(id)) !== limit.region)
        throw new ControlError('ROLLOUT_NOT_FOUND', 'There is no such rollout.')
      return
    case 'region':
      // The ID of a host begins with that of its region.
      if (id.split('.')[0] !== limit.region)
        throw new ControlError('NOT_FOUND', `There is no region "${id.slice(0, 100)}".`)
  }
}

/**
 * Rejects a valid body with which a limited key would create something outside its tenant or region.
 * @throws ControlError KEY_LIMITED
 */
export function checkLimitOfBody(limit: KeyLimit, access: LimitedAccess, body: unknown): void {
  if (!isLimited(limit)) return
  const member = (name: string): unknown =>
    typeof body === 'object' && body !== null ? Object.entries(body).find(([key]) => key === name)?.[1] : undefined
  if (access === 'region in the body' && member('region') !== limit.region)
    throw new ControlError('KEY_LIMITED', `Field "region" must be "${limit.region ?? ''}", because ${why(limit)}.`)
  if (access === 'tenant, in its region' && ![undefined, limit.region].includes(member('region') as string | undefined))
    throw new ControlError('KEY_LIMITED', `Field "region" must be absent, because ${why(limit)}.`)
  const hasTarget = access === 'tenant, with a target' || access === 'backup, with a target'
  if (hasTarget && limit.tenantId !== undefined && member('into') !== 'same')
    throw new ControlError('KEY_LIMITED', `Field "into" must be "same", because ${why(limit)}.`)
}

function why(limit: KeyLimit): string {
  return `the platform key is limited to ${limitText(limit)}`
}

function keyLimited(limit: KeyLimit): ControlError {
  return new ControlError(
    'KEY_LIMITED',
    `This call is not available to a platform key that is limited to ${limitText(limit)}.`,
  )
}
