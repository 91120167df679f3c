// A program that stands for a shared runtime: it receives the manifests of all tenants as a runtime does, and responds for
// homes that do not exist.
import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { internalPaths, TenantManifest, WatchedTable, type HomeCounters, type TenantHealth } from '@tenantry/contract'

const setting = (name: string) => process.env[name] ?? ''
const table = new WatchedTable<TenantManifest>({
  url: new URL(internalPaths.watchManifests, setting('TENANTRY_CONTROL_URL')).href,
  internalToken: (await readFile(setting('TENANTRY_INTERNAL_TOKEN_FILE'), 'utf8')).trim(),
  schema: TenantManifest,
  key: 'tenant_id',
  file: join(setting('TENANTRY_DATA'), 'manifests.ndjson'),
  fetch,
})

createServer((request, response) => {
  const { pathname } = new URL(request.url ?? '/', 'http://runtime')
  const [, tenantId = '', subject = ''] = /^\/internal\/v1\/tenants\/(t_[0-9a-f]{20})\/(\w+)$/.exec(pathname) ?? []
  const body = subject === '' ? general(pathname) : ofTenant(tenantId, subject)
  response.writeHead(body === undefined ? 404 : 200, { 'content-type': 'application/json' })
  response.end(JSON.stringify(body ?? {}))
}).listen(Number(setting('TENANTRY_PORT')), '127.0.0.1')
await table.load()
await table.run(new AbortController().signal)

function general(path: string): object {
  if (path === internalPaths.live) return { synced: table.synced, tenants: table.size }
  if (path === internalPaths.storageState) return { tenants: {} }
  return []
}

function ofTenant(id: string, subject: string): TenantHealth | HomeCounters | object | undefined {
  const manifest = table.get(id)
  const at = new Date().toISOString()
  if (subject === 'health' && manifest !== undefined) {
    const component = { status: 'healthy' as const, observed_at: at }
    const components = { database: component, storage: component, functions: component }
    return { tenant_id: id, generation: manifest.generation, status: 'healthy' as const, components }
  }
  if (subject === 'books' && manifest !== undefined)
    return { tenant_id: id, books: bookOf(id), began: at, at, document_bytes: 1, file_bytes: 1, hours: [] }
  return subject === 'data' ? {} : undefined
}

/** Returns a UUID that is always the same for a tenant. */
function bookOf(id: string): string {
  const digits = createHash('sha256').update(id).digest('hex')
  return [8, 12, 16, 20, 32].map((end, at, ends) => digits.slice(ends[at - 1] ?? 0, end)).join('-')
}
