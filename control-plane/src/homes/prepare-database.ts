// SQL that prepares a database for homes. Pure.
import { identifier } from '../platform/identifiers.ts'
import { closePublicFunctionsSql, openFunctionsSql } from '../platform/public-functions.ts'
import { createRoleSql, tenantsGroup } from './home-sql.ts'
import { hasObjectLimitSql, limitObjectsSql } from './object-limit.ts'
import { missingRealtimeSql, realtimeFunctionsSql } from './realtime-functions.ts'
import { replicaPosition } from './replica-position.ts'
import { runningWriters } from './running-writers.ts'

/**
 * Returns SQL that prepares a database for a restored home: it creates the group role and revokes the rights of all
 * users. It runs as superuser, inside that database, and may be repeated. Large objects and temporary tables would
 * bypass quotas.
 */
export function prepareSharedDatabaseSql(database: string): string {
  return [
    createRoleSql(tenantsGroup, 'nologin'),
    `revoke all on database ${identifier(database)} from public`,
    `grant connect on database ${identifier(database)} to ${identifier(tenantsGroup)}`,
    'revoke all on schema public from public',
    closePublicFunctionsSql,
    runningWriters.creationSql,
    realtimeFunctionsSql,
    replicaPosition.creationSql,
  ].join(';\n')
}

/**
 * Returns SQL that prepares a database for homes in use: it also limits their objects. A home is restored before that,
 * because a home of an earlier version may have more.
 */
export function prepareHomesSql(database: string, maxObjects: number): string {
  return [prepareSharedDatabaseSql(database), limitObjectsSql(maxObjects)].join(';\n')
}

/** Returns SQL that lists, in a column `problem`, what `prepareHomesSql` must restore. Any login may run it. */
export function unpreparedSql(maxObjects: number): string {
  return (
    `select 'the limit of objects is not installed' as problem where not ${hasObjectLimitSql(maxObjects)}` +
    ` union all select format('the function %s is open to all logins', signature) from (${openFunctionsSql}) as open` +
    ` union all ${runningWriters.missingSql} union all ${missingRealtimeSql}` +
    ` union all ${replicaPosition.missingSql}`
  )
}
