// Serves storage alone in this process, on a scene, for tests that damage its disk or its database.
import type { Test } from 'tap'
import pino from 'pino'
import { createBounds } from '#tenant-runtime/bounds/index.ts'
import { buildApp } from '#tenant-runtime/app.ts'
import { Connections, defaultConnectionLimits } from '#tenant-runtime/database/connections.ts'
import { ScopedDatabase } from '#tenant-runtime/database/scoped-database.ts'
import type { BlobBackend } from '#tenant-runtime/storage/backend/backend.ts'
import { LocalBackend } from '#tenant-runtime/storage/backend/local.ts'
import type { StorageFailpoint } from '#tenant-runtime/storage/failpoints.ts'
import { createStorageModule } from '#tenant-runtime/storage/storage-module.ts'
import { Authenticator } from '#tenant-runtime/tenancy/authenticate.ts'
import type { Tenant } from '#tenant-runtime/tenancy/tenant.ts'
import { internalToken, type Request, type Scene } from './scene.ts'

export interface Served {
  request: Request
  /** Errors that modules reported, and lines of the log at level error. */
  errors: string[]
  /** Returns when no collection is running. */
  idle(): Promise<void>
  /** Returns when everything has stopped. */
  close(): Promise<void>
}

export interface ServeOptions {
  backend?: BlobBackend
  failpoint?: StorageFailpoint
  /** The port of the database; its own by default. */
  databasePort?: number
}

export async function serve(
  t: Test,
  scene: Scene,
  {
    backend = new LocalBackend(scene.blobs),
    failpoint = () => undefined,
    databasePort = scene.postgres.port,
  }: ServeOptions = {},
): Promise<Served> {
  const { home, manifest } = scene
  const connections = new Connections(defaultConnectionLimits)
  const through = (url: string) => url.replace(`:${scene.postgres.port}/`, `:${databasePort}/`)
  const tenant: Tenant = {
    ...scene.tenant,
    database: new ScopedDatabase(connections, {
      tenantId: home.tenantId,
      url: through(home.url),
      ddlUrl: through(home.ddl_url),
    }),
  }
  const errors: string[] = []
  const storage = createStorageModule({
    backend,
    failpoint,
    tenants: () => [tenant],
    now: Date.now,
    onError: (error) => errors.push(error.message),
  })
  await storage.start()
  const app = await buildApp({
    internalToken,
    authenticator: new Authenticator(Date.now),
    modules: [storage],
    tenantOf: (id) => (id === manifest.tenant_id ? tenant : undefined),
    now: () => new Date(),
    elapsed: () => performance.now(),
    bounds: createBounds({ bodyBytes: 2 ** 29, resultBytes: 2 ** 29 }),
    onWrite: () => undefined,
    logger: pino({ level: 'error', base: null }, { write: (line: string) => errors.push(line) }),
  })
  await app.listen({ host: '127.0.0.1', port: 0 })
  const address = app.server.address()
  if (address === null || typeof address === 'string') throw new Error('the server has no port')
  let closing: Promise<void> | undefined
  const close = () =>
    (closing ??= (async () => {
      app.server.closeAllConnections()
      await app.close()
      await storage.idle()
      await connections.close()
    })())
  t.teardown(close)
  return { request: scene.createRequest(address.port), errors, close, idle: () => storage.idle() }
}
