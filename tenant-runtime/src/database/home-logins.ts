// The logins of a tenant's home.

/** The logins of a home. Their owner may replace the URLs while requests run. */
export interface HomeLogins {
  tenantId: string
  /** The URL of the runtime's login. This and the next one are empty once the runtime does not serve the tenant any more. */
  url: string
  /** The URL of the ddl login. */
  ddlUrl: string
  /** URLs of both logins with their other valid passwords, while these are rotated. */
  otherUrls?: readonly string[]
  otherDdlUrls?: readonly string[]
  /** Names and ports of all members of the home's cluster; absent or empty if the database has no replicas. */
  members?: readonly string[]
}

/** A login of the runtime. */
interface RuntimeLogin {
  tenantId: string
  url: string
  otherUrls: readonly string[] | undefined
}

/** Returns the runtime's login as it is now. */
export function runtimeLogin({ tenantId, url, otherUrls }: HomeLogins): RuntimeLogin {
  return { tenantId, url, otherUrls }
}

/** Returns the runtime's login at another server. @param address host and port */
export function runtimeLoginAt(home: HomeLogins, address: string): RuntimeLogin {
  const at = (url: string) => (url === '' ? '' : Object.assign(new URL(url), { host: address }).href)
  return { tenantId: home.tenantId, url: at(home.url), otherUrls: home.otherUrls?.map(at) }
}
