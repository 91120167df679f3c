// Reads the limits of a new platform key from its request. Pure.
import { networkText, readNetwork } from '@tenantry/contract'
import { ControlError } from '../platform/errors.ts'
import type { KeyRights } from './platform-key.ts'

/** Maximum number of addresses and networks of one key. */
export const maxAddresses = 100

interface RequestedRights {
  tenant_id?: string
  region?: string
  addresses?: string[]
  expires_in_seconds?: number
}

/**
 * Returns the rights of the new key. What the request leaves out is as in the creator's key.
 * @throws ControlError INVALID_FIELD, UNKNOWN_REGION
 */
export function readRights(
  { tenant_id: tenantId, region, addresses, expires_in_seconds: seconds }: RequestedRights,
  creator: KeyRights,
  { regions, now }: { regions: readonly { id: string }[]; now: () => Date },
): KeyRights {
  if (tenantId !== undefined && region !== undefined)
    throw new ControlError('INVALID_FIELD', 'Field "region" must not be given together with "tenant_id".')
  if (region !== undefined && !regions.some(({ id }) => id === region))
    throw new ControlError(
      'UNKNOWN_REGION',
      `Unknown region "${region}". Allowed: ${regions.map(({ id }) => id).join(', ')}.`,
    )
  return {
    ...limitOfKey(tenantId, region, creator),
    addresses: addresses === undefined ? creator.addresses : addresses.map(canonicalAddress),
    expiresAt: seconds === undefined ? creator.expiresAt : new Date(now().getTime() + seconds * 1_000),
  }
}

function limitOfKey(tenantId: string | undefined, region: string | undefined, creator: KeyRights) {
  if (tenantId !== undefined) return { tenantId }
  if (region !== undefined) return { region }
  return {
    ...(creator.tenantId === undefined ? {} : { tenantId: creator.tenantId }),
    ...(creator.region === undefined ? {} : { region: creator.region }),
  }
}

function canonicalAddress(text: string): string {
  const network = readNetwork(text)
  if (network !== undefined) return networkText(network)
  throw new ControlError(
    'INVALID_FIELD',
    `Field "addresses" has the invalid entry "${text}". ` +
      'Allowed: IPv4 and IPv6 addresses such as 203.0.113.7, and networks such as 203.0.113.0/24 or 2001:db8::/48.',
  )
}
