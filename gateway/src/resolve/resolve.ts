// Host and path → which tenant is meant and what its runtime is asked for. Pure.

export interface Resolved {
  /** What stands where a tenant's name would; perhaps of no tenant. */
  name: string
  /** The path and query for the runtime: the client's own bytes, never decoded or normalised. */
  path: string
  /** The prefix under which the client sees the tenant: `/t/acme`, or empty. */
  basePath: string
}

/**
 * A host below the domain (`acme.localhost:8080`, any case, with or without the trailing dot) decides alone;
 * any other host is that of the installation, where tenants stand under `/t/{name}`.
 * @param domain lower case, without a leading or trailing dot
 * @returns undefined when no tenant is addressed
 */
export function resolve(host: string, path: string, domain: string): Resolved | undefined {
  const label = labelBelow(host, domain)
  if (label !== undefined) return { name: label, path, basePath: '' }
  if (!path.startsWith('/t/')) return undefined
  const end = nameEnd(path)
  if (end === 3) return undefined
  const rest = path.slice(end)
  return {
    name: path.slice(3, end),
    path: rest.startsWith('/') ? rest : `/${rest}`,
    basePath: path.slice(0, end),
  }
}

/** What stands before `.{domain}`, or undefined when the host is not below the domain. */
function labelBelow(host: string, domain: string): string | undefined {
  let end = host.length
  const colon = host.lastIndexOf(':')
  if (colon > host.lastIndexOf(']')) end = colon
  if (end > 0 && host.charCodeAt(end - 1) === dot) end--
  const start = end - domain.length
  if (start < 2 || host.charCodeAt(start - 1) !== dot) return undefined
  const lower = host.slice(0, end).toLowerCase()
  return lower.endsWith(domain) ? lower.slice(0, start - 1) : undefined
}

function nameEnd(path: string): number {
  for (let at = 3; at < path.length; at++) {
    const code = path.charCodeAt(at)
    if (code === slash || code === question) return at
  }
  return path.length
}

const dot = 0x2e
const slash = 0x2f
const question = 0x3f
