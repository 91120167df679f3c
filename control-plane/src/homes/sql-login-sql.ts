// SQL that opens and closes the SQL logins of tenants, `t_<hex>_admin`. Pure; `home-databases.ts` runs it.
import { homeRoles } from './home-roles.ts'
import { identifier, literal } from '../platform/identifiers.ts'

/** SQL of the SQL logins of the tenants `$1`, and of those that are closed, and whether each is open. */
export const sqlLoginsSql = `
  select left(rolname, -length('_admin')) as "tenantId", rolcanlogin as "isOpen" from pg_roles
  where rolname ~ '^t_[0-9a-f]{20}_admin$'
    and (not rolcanlogin or rolname = any (select id || '_admin' from unnest($1::text[]) as id))`

/** SQL that ends the sessions of closed SQL logins. A client may have logged in while its login was being closed. */
export const endClosedSessionsSql = `
  select pg_terminate_backend(pid) from pg_stat_get_activity(null) join pg_roles on pg_roles.oid = usesysid
  where rolname ~ '^t_[0-9a-f]{20}_admin$' and not rolcanlogin`

/** Returns SQL that ends the sessions of a tenant's SQL login. They could hold the lock of their own role's row. */
export function endAdminSessionsSql(tenantId: string): string {
  return `select pg_terminate_backend(pid, 2000) from pg_stat_activity where usename = ${literal(homeRoles(tenantId).admin)}`
}

/** Returns SQL that sets the password of a tenant's SQL login. */
export function setSqlPasswordSql(tenantId: string, verifier: string): string {
  const role = identifier(homeRoles(tenantId).admin)
  return `set local lock_timeout = '2s'; alter role ${role} password ${literal(verifier)}`
}

/** Returns SQL that opens or closes a tenant's SQL login. An absent role is not an error. */
export function setSqlLoginSql(tenantId: string, isOpen: boolean): string {
  const role = identifier(homeRoles(tenantId).admin)
  return (
    `set local lock_timeout = '2s'; do $do$ begin if to_regrole(${literal(role)}) is not null then ` +
    `alter role ${role} ${isOpen ? 'login' : 'nologin'}; end if; end $do$`
  )
}
