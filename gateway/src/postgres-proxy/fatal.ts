// The errors that the Postgres proxy sends to SQL clients, as PostgreSQL's ErrorResponse. Pure.
import type { Rejection } from '../errors.ts'

/** A rejection in SQL's terms. */
export interface SqlRejection {
  /** SQLSTATE. */
  readonly code: string
  /** The public message, which never names addresses or other tenants. */
  readonly message: string
}

const invalidAuthorization = '28000'
const cannotConnectNow = '57P03'

export const sqlRejections = {
  unreadable: { code: '08P01', message: 'The startup packet is not valid, or of a protocol other than 3.' },
  /**
   * One message for an unknown user, a missing tenant and a database that is not served, so that it reveals nothing.
   */
  unknownUser: { code: invalidAuthorization, message: 'No database is served to this user.' },
  tlsRequired: { code: invalidAuthorization, message: 'Only encrypted connections are served (sslmode=require).' },
  tooManyLogins: { code: '53300', message: 'Too many logins are already in progress.' },
  tooManySessions: { code: '53300', message: 'Too many sessions are already open.' },
  connectionsUnknown: {
    code: '53300',
    message: 'The gateway currently cannot check whether the plan allows another connection.',
  },
  connectionsTaken: {
    code: '53300',
    message: 'The maximum number of connections that the plan allows is already open.',
  },
  unreachable: { code: cannotConnectNow, message: 'The database cannot be reached for now.' },
} as const satisfies Record<string, SqlRejection>

/** Translates a tenant's HTTP rejection to SQL: a lasting one, or one that may be retried. */
export function sqlRejection({ status, message }: Rejection): SqlRejection {
  if (status === 404) return sqlRejections.unknownUser
  return { code: status < 500 ? invalidAuthorization : cannotConnectNow, message }
}

/** Translates the rejection of a session by the tenant's connection quota, which is used up or not known. */
export function sqlRejectionOfSession({ code }: Rejection): SqlRejection {
  return code === 'QUOTA_CONNECTIONS' ? sqlRejections.connectionsTaken : sqlRejections.connectionsUnknown
}

export function fatalMessage({ code, message }: SqlRejection): Buffer {
  const fields = Buffer.from(`SFATAL\0VFATAL\0C${code}\0M${message}\0\0`)
  const header = Buffer.alloc(5)
  header.write('E')
  header.writeUInt32BE(fields.length + 4, 1)
  return Buffer.concat([header, fields])
}
