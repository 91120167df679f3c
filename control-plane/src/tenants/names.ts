// Which names a tenant may have. A name is the first label of a host name, so the installation keeps some.
import { ControlError } from '../platform/errors.ts'

const pattern = /^[a-z](?:[a-z0-9-]*[a-z0-9])$/

/** Names that would shadow the installation's own hosts, or look like them. */
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

/** Name of a tenant made in advance, until a create claims it: no other tenant can have it. */
export function warmName(tenantId: string): string {
  return `warm-${tenantId.slice('t_'.length)}`
}

/** Checks the name that a tenant is to have. @throws ControlError INVALID_NAME or RESERVED_NAME that says why */
export function checkName(name: string): void {
  const error =
    name.length < 3 || name.length > 63
      ? 'must be 3 to 63 characters long'
      : !/^[a-z0-9-]*$/.test(name)
        ? 'may hold only lower-case letters, digits and hyphens'
        : !/^[a-z]/.test(name)
          ? 'must begin with a letter'
          : name.endsWith('-')
            ? 'must not end with a hyphen'
            : name.slice(2, 4) === '--'
              ? 'must not have hyphens in the third and fourth place, which marks an encoded host name'
              : !pattern.test(name)
                ? 'is no DNS label'
                : undefined
  if (error !== undefined) throw new ControlError('INVALID_NAME', `name ${error}`)
  if (reservedNames.has(name) || warmNames.test(name))
    throw new ControlError('RESERVED_NAME', `name "${name}" is reserved`)
}
