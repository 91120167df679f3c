// What a runtime says of a tenant, in a line that may be shown: a tenant's own runtime may say anything. Pure.
import type { TenantHealth } from '@tenantry/contract'

const maxComplaintLength = 200

/** A runtime's health as one line for a condition's message: public, without control characters, of bounded length. */
export function healthInWords({
  status,
  generation,
  components,
}: Pick<TenantHealth, 'status' | 'generation' | 'components'>): string {
  const complaints = Object.entries(components)
    .filter(([, component]) => component.status !== 'healthy' && component.message !== undefined)
    .map(([name, { message = '' }]) => `${name}: ${message}`)
  const reported = printable(complaints.join('; '))
  return `says ${status} at generation ${generation}${reported === '' ? '' : `: ${reported}`}`
}

/** Without control characters, marks of direction and halves of characters; the beginning of what is too long. */
function printable(text: string): string {
  const line = text.replaceAll(/[\p{C}\p{Zl}\p{Zp}]+/gu, ' ')
  return line.length <= maxComplaintLength
    ? line
    : `${line.slice(0, maxComplaintLength - 1).replace(/[\ud800-\udbff]$/, '')}…`
}
