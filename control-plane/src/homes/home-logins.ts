// URLs of a home's logins.
import { homeRoles, type HomeRoles } from './home-roles.ts'

/** Returns a login's URL. @param postgresUrl any URL of the server, of which host and port are used */
export function loginUrl(
  postgresUrl: string,
  database: string,
  tenantId: string,
  login: Exclude<keyof HomeRoles, 'owner'>,
  password: string,
): string {
  const { host } = new URL(postgresUrl)
  return `postgresql://${homeRoles(tenantId)[login]}:${encodeURIComponent(password)}@${host}/${database}`
}
