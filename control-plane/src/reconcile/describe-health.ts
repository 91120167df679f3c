// Describes a tenant's health in one public line. A tenant's own runtime may report any text. Pure.
import type { TenantHealth } from '@tenantry/contract'

const maxDetailsLength = 200

/**
 * Returns a runtime's health as a part of a condition's message: public, without control characters, of bounded length.
 */
export function describeHealth({
  status,
  generation,
  components,
}: Pick<TenantHealth, 'status' | 'generation' | 'components'>): string {
  const details = Object.entries(components)
    .filter(([, component]) => component.status !== 'healthy' && component.message !== undefined)
    .map(([name, { message = '' }]) => `${name}: ${message}`)
  const text = printable(details.join('; '))
  return `reports ${status} at generation ${generation}${text === '' ? '' : `: ${text}`}`
}

/** Removes control characters, direction marks and lone surrogates, and cuts a long text. */
function printable(text: string): string {
  const line = text.replaceAll(/[\p{C}\p{Zl}\p{Zp}]+/gu, ' ')
  return line.length <= maxDetailsLength
    ? line
    : `${line.slice(0, maxDetailsLength - 1).replace(/[\ud800-\udbff]$/, '')}…`
}
