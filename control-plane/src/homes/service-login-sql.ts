// SQL that compares and sets the passwords of the services' logins, `t_<hex>` and `t_<hex>_ddl`.
import { homeRoles } from './home-roles.ts'
import type { ServicePasswords } from './home-server.ts'
import { verifierOf } from './scram.ts'
import { identifier, literal } from '../platform/identifiers.ts'

/** A login of a service in a tenant's home, with what Postgres stores of its password. */
export interface ServiceLogin {
  tenantId: string
  login: 'runtime' | 'ddl'
  /** Null for a login without a password. */
  verifier: string | null
}

/** The logins that may have changed after an earlier call, and the mark for the next call. */
export interface ChangedLogins {
  logins: ServiceLogin[]
  mark: string
}

/**
 * SQL of the next mark: transactions from it on were not visible to the statement. A separate statement reads it first.
 */
export const loginMarkSql = 'select pg_snapshot_xmin(pg_current_snapshot())::xid::text as mark'

/**
 * SQL of the logins that a transaction from the mark `$1` on has changed, or of all logins if it is null. So an unchanged
 * server returns none. Comparing ages is correct when the numbers of transactions have begun again.
 */
export const changedLoginsSql = `
  select left(rolname, 22) as "tenantId", case length(rolname) when 22 then 'runtime' else 'ddl' end as login,
    rolpassword as verifier
  from pg_authid
  where rolname ~ '^t_[0-9a-f]{20}(_ddl)?$' and ($1::text is null or age(xmin) <= age($1::text::xid))`

/** Returns SQL that sets the passwords of both logins. */
export function setServicePasswordsSql(tenantId: string, passwords: ServicePasswords): string {
  const roles = homeRoles(tenantId)
  const set = (login: ServiceLogin['login']) =>
    `alter role ${identifier(roles[login])} password ${literal(verifierOf(passwords[login]))}`
  return `set local lock_timeout = '2s'; ${set('runtime')}; ${set('ddl')}`
}

/** Returns SQL that sets a login's password. An absent role is not an error. */
export function setPasswordSql(tenantId: string, login: ServiceLogin['login'], verifier: string): string {
  const role = identifier(homeRoles(tenantId)[login])
  return (
    `set local lock_timeout = '2s'; do $do$ begin if to_regrole(${literal(role)}) is not null then ` +
    `alter role ${role} password ${literal(verifier)}; end if; end $do$`
  )
}
