// The addresses of a home's logins.
import { homeRoles, type HomeRoles } from './home-roles.ts'

/** `postgresUrl` is any URL of the server; its host and port are taken. */
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
