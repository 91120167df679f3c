// The rules of tenants' names. A name is the first label of a host name, so the installation reserves some.
import { ControlError } from '../platform/errors.ts'

const pattern = /^[a-z](?:[a-z0-9-]*[a-z0-9])$/

/** Names that would shadow the installation's own hosts, or resemble them. */
export const reservedNames: ReadonlySet<string> = new Set([
  'about',
  'account',
  'accounts',
  'admin',
  'administrator',
  'api',
  'app',
  'assets',
  'auth',
  'autoconfig',
  'billing',
  'blog',
  'cdn',
  'console',
  'control',
  'dashboard',
  'demo',
  'dev',
  'docs',
  'email',
  'ftp',
  'gateway',
  'health',
  'help',
  'imap',
  'internal',
  'invoice',
  'invoices',
  'localhost',
  'login',
  'mail',
  'metrics',
  'mx',
  'ns',
  'ns1',
  'ns2',
  'ops',
  'pop',
  'postgres',
  'postmaster',
  'public',
  'register',
  'root',
  'security',
  'signin',
  'signup',
  'smtp',
  'ssl',
  'staging',
  'static',
  'status',
  'support',
  'system',
  'tenant',
  'tenantry',
  'tenants',
  'test',
  'webmaster',
  'wpad',
  'www',
  'xn',
])

const warmNames = /^warm-[0-9a-f]{20}$/

/** Returns the name of a tenant that is created in advance, until a request claims it. No other tenant can have it. */
export function warmName(tenantId: string): string {
  return `warm-${tenantId.slice('t_'.length)}`
}

/** Checks the name of a new or renamed tenant. @throws ControlError INVALID_NAME or RESERVED_NAME */
export function checkName(name: string): void {
  const rule =
    name.length < 3 || name.length > 63
      ? 'It must be 3 to 63 characters long.'
      : !/^[a-z0-9-]*$/.test(name)
        ? 'It may contain only lower-case letters, digits and hyphens.'
        : !/^[a-z]/.test(name)
          ? 'It must begin with a letter.'
          : name.endsWith('-')
            ? 'It must not end with a hyphen.'
            : name.slice(2, 4) === '--'
              ? 'It must not have hyphens as third and fourth character, which mark an encoded host name.'
              : !pattern.test(name)
                ? 'It must be a DNS label.'
                : undefined
  if (rule !== undefined) throw new ControlError('INVALID_NAME', `Invalid name "${name.slice(0, 100)}". ${rule}`)
  if (reservedNames.has(name) || warmNames.test(name))
    throw new ControlError('RESERVED_NAME', `The name "${name}" is reserved.`)
}
