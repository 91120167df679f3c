// The SQL sessions of one tenant, as operators see and end them: on a shared server, or in the tenant's own container.
import type { ExecResult } from '../engines/index.ts'
import { homeRoles } from '../homes/index.ts'
import { ControlError } from '../platform/errors.ts'
import { terminateOwnSql, tenantSessionsSql } from './sessions-sql.ts'

/** A session as the API shows it. */
export interface OperatorSession {
  pid: number
  login: 'runtime' | 'ddl' | 'admin' | 'system'
  client_address: string | null
  application_name: string
  state: string
  started_at: string
  transaction_started_at: string | null
  statement_started_at: string | null
  wait: string | null
  memory_bytes: number | null
  temporary_bytes: number
  locks: number
  statement?: string | null
}

/** Runs one statement of the superuser that returns one JSON value. */
export type RunStatement = (sql: string) => Promise<unknown>

type Row = Omit<OperatorSession, 'login'> & { role: string }

/** Returns the sessions of a tenant's logins, the oldest first. */
export async function listSessions(
  run: RunStatement,
  tenantId: string,
  withStatements: boolean,
): Promise<OperatorSession[]> {
  const roles = rolesOf(tenantId)
  const rows = (await run(tenantSessionsSql(Object.keys(roles), withStatements))) as Row[]
  return rows.flatMap(({ role, ...session }) => {
    const login = roles[role]
    return login === undefined ? [] : [{ login, ...session }]
  })
}

/** Terminates a session of a tenant's logins. @returns false if the tenant has no such session */
export async function endSession(run: RunStatement, tenantId: string, pid: number): Promise<boolean> {
  return (await run(terminateOwnSql(Object.keys(rolesOf(tenantId)), pid))) === true
}

function rolesOf(tenantId: string): Record<string, OperatorSession['login']> {
  const { runtime, ddl, admin, system } = homeRoles(tenantId)
  return { [runtime]: 'runtime', [ddl]: 'ddl', [admin]: 'admin', [system]: 'system' }
}

/** The command that runs a statement in the container of a tenant's own Postgres, as its superuser. */
export const psqlCommand = [
  'timeout',
  '5',
  'psql',
  '-X',
  '-q',
  '-A',
  '-t',
  '-v',
  'ON_ERROR_STOP=1',
  '-U',
  'postgres',
  '-f',
  '-',
]

/** Reads the JSON value that the command has printed. @throws ControlError UNAVAILABLE if the statement failed */
export function readOutput({ code, stdout, stderr }: ExecResult): unknown {
  if (code !== 0)
    throw new ControlError('UNAVAILABLE', "The tenant's Postgres does not respond.", { cause: new Error(stderr) })
  return JSON.parse(stdout)
}
