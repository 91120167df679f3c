// A runtime with a planted defect that the crash test must detect: it unlinks the file of a deleted object before the
// transaction that deletes its row commits, and kills itself between the two. Everything else is the product's code.
import { join } from 'node:path'
import pino from 'pino'
import { createBounds } from '#tenant-runtime/bounds/index.ts'
import { buildApp } from '#tenant-runtime/app.ts'
import { readConfig } from '#tenant-runtime/config.ts'
import { Connections, defaultConnectionLimits } from '#tenant-runtime/database/connections.ts'
import { ScopedDatabase } from '#tenant-runtime/database/scoped-database.ts'
import type { Result, ScopedStatements, Statement } from '#tenant-runtime/database/statement.ts'
import type { BlobBackend } from '#tenant-runtime/storage/backend/backend.ts'
import { LocalBackend } from '#tenant-runtime/storage/backend/local.ts'
import { createStorageModule } from '#tenant-runtime/storage/storage-module.ts'
import { Authenticator } from '#tenant-runtime/tenancy/authenticate.ts'
import type { RlsContext } from '#tenant-runtime/tenancy/rls-context.ts'
import { TenantRegistry } from '#tenant-runtime/tenancy/tenant-registry.ts'

class HastyDatabase extends ScopedDatabase {
  readonly #backend: BlobBackend

  constructor(connections: Connections, home: { tenantId: string; url: string; ddlUrl: string }, backend: BlobBackend) {
    super(connections, home)
    this.#backend = backend
  }

  override async runTogether(parts: readonly ScopedStatements[]): Promise<Result[]> {
    for (const { context, statements } of parts) await this.#unlinkBefore(context, statements)
    return super.runTogether(parts)
  }

  async #unlinkBefore(context: RlsContext, statements: readonly Statement[]): Promise<void> {
    const removal = statements.find(({ text }) =>
      text.includes('delete from storage_objects where bucket_id = $1 and path = $2'),
    )
    if (removal === undefined) return
    const [bucketId = null, path = null] = removal.values
    const { rows } = await this.query(
      context,
      'select blob_id from storage_objects where bucket_id = $1 and path = $2',
      bucketId,
      path,
    )
    for (const row of rows) {
      await this.#backend.remove(this.tenantId, String(row['blob_id']))
      process.kill(process.pid, 'SIGKILL')
    }
  }
}

const { controlUrl, internalToken, region, data, share, host, port } = readConfig(process.env)
const backend = new LocalBackend(join(data, 'blobs'))
const connections = new Connections(defaultConnectionLimits)
const registry = new TenantRegistry({
  controlUrl,
  internalToken,
  connections,
  fetch,
  region,
  data,
  share,
  onChange: () => undefined,
  onError: (error) => {
    throw error
  },
})
const tenantOf = (id: string) => {
  const tenant = registry.get(id)
  if (tenant === undefined) return undefined
  const { url, ddl_url: ddlUrl } = tenant.manifest.home
  return { ...tenant, database: new HastyDatabase(connections, { tenantId: id, url, ddlUrl }, backend) }
}
const storage = createStorageModule({
  backend,
  tenants: () => registry.all(),
  failpoint: () => undefined,
  now: Date.now,
  onError: (error) => {
    throw error
  },
})
await registry.load()
await storage.start()
const app = await buildApp({
  internalToken,
  authenticator: new Authenticator(Date.now),
  modules: [storage],
  tenantOf,
  now: () => new Date(),
  elapsed: () => performance.now(),
  bounds: createBounds({ bodyBytes: 2 ** 29, resultBytes: 2 ** 29 }),
  onWrite: () => undefined,
  logger: pino({ level: 'fatal' }),
})
void registry.run(new AbortController().signal)
await app.listen({ host, port })
