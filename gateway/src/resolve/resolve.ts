// Finds the addressed tenant and its runtime's path from a request's host and path. Pure.

export interface Resolved {
  /** The text in the position of a tenant's name; possibly of no tenant. */
  name: string
  /** The path and query for the runtime: the client's own bytes, never decoded or normalised. */
  path: string
  /** The prefix under which the client sees the tenant: `/t/acme`, or empty. */
  basePath: string
}

/**
 * Resolves a request's address. A host below the domain (`acme.localhost:8080`, any case, with or without the trailing dot)
 * is sufficient. Any other host is the installation's, which has tenants under `/t/{name}`.
 * @param domain lower case, without a leading or trailing dot
 * @returns undefined when the request addresses no tenant
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

/** Returns the text before `.{domain}`, or undefined when the host is not below the domain. */
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
    if (code === slash || code === questionMark) return at
  }
  return path.length
}

const dot = 0x2e
const slash = 0x2f
const questionMark = 0x3f
