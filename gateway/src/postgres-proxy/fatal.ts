// What the door tells an SQL client that it does not let in: PostgreSQL's ErrorResponse. Pure.
import type { Rejection } from '../errors.ts'

/** A refusal in SQL's terms. */
export interface SqlRejection {
  /** SQLSTATE. */
  readonly code: string
  /** Public text; never names addresses or other tenants. */
  readonly message: string
}

const invalidAuthorization = '28000'
const cannotConnectNow = '57P03'

export const sqlRejections = {
  unreadable: { code: '08P01', message: 'The startup packet is not valid, or of a protocol other than 3.' },
  /** The same for whoever is no tenant's user, whose tenant is not there, or whose database is not served. */
  unknownUser: { code: invalidAuthorization, message: 'No database is served to this user.' },
  tlsRequired: { code: invalidAuthorization, message: 'Only encrypted connections are served (sslmode=require).' },
  tooManyLogins: { code: '53300', message: 'Too many logins are under way already.' },
  tooManySessions: { code: '53300', message: 'Too many sessions are open already.' },
  connectionsUnknown: {
    code: '53300',
    message: 'Whether the plan has room for one more connection cannot be found out for now.',
  },
  connectionsTaken: { code: '53300', message: 'The plan allows no more connections at once than are open already.' },
  unreachable: { code: cannotConnectNow, message: 'The database cannot be reached for now.' },
} as const satisfies Record<string, SqlRejection>

/** How a tenant's refusal over HTTP reads here: one that lasts, or one that is worth another try. */
export function sqlRejection({ status, message }: Rejection): SqlRejection {
  if (status === 404) return sqlRejections.unknownUser
  return { code: status < 500 ? invalidAuthorization : cannotConnectNow, message }
}

/** The same of one more session that the tenant's quota has no room for, or none that is known of. */
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
