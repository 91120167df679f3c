// Compares the rights of platform keys, and checks the address of a key's caller. Pure.
import { addressDigits, prefixOf, readNetwork, type Network } from '@tenantry/contract'
import { ControlError } from '../platform/errors.ts'
import type { KeyLimit, KeyRights } from './platform-key.ts'

/** Whether a key is limited to a tenant or a region. */
export function isLimited({ tenantId, region }: KeyLimit): boolean {
  return tenantId !== undefined || region !== undefined
}

/** Returns what a key is limited to, for messages. */
export function limitText({ tenantId, region }: KeyLimit): string {
  if (tenantId !== undefined) return `the tenant ${tenantId}`
  return region === undefined ? 'nothing' : `the region "${region}"`
}

/**
 * Whether a key with the first limit may use what a key with the second limit may use.
 * @param regionOfTenant the region of the second limit's tenant; undefined without one
 */
export function coversLimit(own: KeyLimit, other: KeyLimit, regionOfTenant: string | undefined): boolean {
  if (own.tenantId !== undefined) return other.tenantId === own.tenantId
  if (own.region !== undefined) return (other.region ?? regionOfTenant) === own.region
  return true
}

/**
 * Returns why a key may not create another one: the right that it lacks itself; undefined if it lacks none.
 * @param regionOfTenant the region of the other key's tenant; undefined without one
 */
export function lackedRight(own: KeyRights, other: KeyRights, regionOfTenant: string | undefined): string | undefined {
  if (!coversLimit(own, other, regionOfTenant)) return `is limited to ${limitText(own)}`
  if (own.expiresAt !== undefined && (other.expiresAt === undefined || other.expiresAt > own.expiresAt))
    return `expires at ${own.expiresAt.toISOString()}`
  if (own.addresses.length === 0) return undefined
  const isCovered = (text: string) => own.addresses.some((network) => contains(readNetwork(network), readNetwork(text)))
  return other.addresses.length > 0 && other.addresses.every(isCovered)
    ? undefined
    : `is limited to the addresses ${own.addresses.join(', ')}`
}

/**
 * Rejects a caller outside a key's addresses.
 * @throws ControlError ADDRESS_NOT_ALLOWED
 */
export function checkCallerAddress(addresses: readonly string[], address: string): void {
  // The name of an interface is not part of the address.
  const digits = addressDigits(address)
  const caller = digits === undefined ? undefined : { digits, bits: digits.length * 4 }
  if (addresses.length === 0 || addresses.some((network) => contains(readNetwork(network), caller))) return
  throw new ControlError(
    'ADDRESS_NOT_ALLOWED',
    `The platform key may not be used from the address ${address.slice(0, 100)}.`,
  )
}

/** Whether a network contains all addresses of another one; false if either text was not a network. */
function contains(outer: Network | undefined, inner: Network | undefined): boolean {
  return (
    outer !== undefined &&
    inner !== undefined &&
    inner.bits >= outer.bits &&
    inner.digits.length === outer.digits.length &&
    prefixOf(inner.digits, outer.bits) === prefixOf(outer.digits, outer.bits)
  )
}
