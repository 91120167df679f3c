// File storage (specification, section 1.1) as a module of the runtime.
import { randomUUID } from 'node:crypto'
import type { RuntimeModule } from '../tenancy/runtime-module.ts'
import type { Tenant } from '../tenancy/tenant.ts'
import { addAbsentFeatureRoutes } from './absent-features.ts'
import type { BlobBackend } from './backend/backend.ts'
import { blobIds } from './backend/blob-ids.ts'
import { addBucketRoutes } from './buckets/bucket-routes.ts'
import { Collector } from './collector.ts'
import type { StorageFailpoint } from './failpoints.ts'
import { addCopyRoutes } from './copy-routes.ts'
import { addHoldRoutes } from './hold-routes.ts'
import { BlobCache } from './objects/blob-cache.ts'
import { addObjectRoutes } from './objects/object-routes.ts'
import { addRemoveRoutes } from './objects/remove-routes.ts'
import { StoredFiles } from './objects/stored-files.ts'
import { uploadRecords } from './objects/upload-records.ts'
import { addUploadRoutes } from './objects/upload-routes.ts'
import { addSignRoutes } from './signing/sign-routes.ts'
import { addStateRoutes } from './state-routes.ts'
import { defaultStorageLimits, type StorageLimits } from './storage-limits.ts'
import { addSweepRoutes } from './sweep-routes.ts'
import { storeError } from './store-id.ts'

export interface StorageModuleOptions {
  backend: BlobBackend
  tenants: () => Iterable<Tenant>
  failpoint: StorageFailpoint
  limits?: StorageLimits
  /** ID of the region whose tenants the runtime serves; absent if it receives those of all regions. */
  region?: string | undefined
  now: () => number
  onError: (error: Error) => void
  sweepMilliseconds?: number
  abandonedMilliseconds?: number
}

export interface StorageModule extends RuntimeModule {
  readonly collector: Collector
  /** Files for other modules of the runtime. */
  readonly files: StoredFiles
  /** Objects found without their file since the start. */
  readonly phantoms: () => number
  /** Accepts files of a tenant again whose data was removed: it had moved away. */
  readmit(tenantId: string): void
  /** Resolves when no collection is running and the database holds no intents in advance. */
  idle(): Promise<void>
}

export function createStorageModule(options: StorageModuleOptions): StorageModule {
  const { backend, failpoint, limits = defaultStorageLimits, now, onError } = options
  const collector = new Collector(options)
  const cache = new BlobCache()
  const freshBlobId = blobIds(randomUUID)
  const records = uploadRecords(freshBlobId)
  const idle = async () => {
    await records.release()
    await collector.idle()
  }
  const phantoms = new Map<string, number>()
  const onPhantom = (tenantId: string, objectId: string) => {
    phantoms.set(tenantId, (phantoms.get(tenantId) ?? 0) + 1)
    onError(new Error(`${tenantId}: The object ${objectId} has no file.`))
  }
  const deps = { backend, cache, collector, failpoint, limits, onPhantom, now, freshBlobId, records }
  return {
    name: 'storage',
    collector,
    files: new StoredFiles(deps),
    readmit: (tenantId) => backend.readmitTenant(tenantId),
    idle,
    phantoms: () => [...phantoms.values()].reduce((sum, n) => sum + n, 0),
    async routes(app) {
      addBucketRoutes(app, collector, failpoint)
      addObjectRoutes(app, deps)
      addRemoveRoutes(app, deps)
      addSignRoutes(app, limits, now)
      addAbsentFeatureRoutes(app)
      addHoldRoutes(app, collector, options.tenants)
      addSweepRoutes(app, collector, (tenantId) => phantoms.get(tenantId) ?? 0)
      addStateRoutes(app, collector, phantoms)
      await app.register(async (bytes) => addUploadRoutes(bytes, deps, now))
      await app.register(async (bytes) => addCopyRoutes(bytes, backend, options.region))
    },
    start: () => backend.start(),
    run: (signal) => collector.run(signal),
    close: idle,
    async health(tenant) {
      const observed_at = new Date(now()).toISOString()
      try {
        const error = (await backend.error()) ?? (await storeError(backend, tenant))
        return error === undefined
          ? { status: 'healthy', observed_at }
          : { status: 'unhealthy', observed_at, message: error }
      } catch {
        return { status: 'unhealthy', observed_at, message: 'The storage does not respond.' }
      }
    },
    async usage(tenant) {
      const { rows } = await tenant.database.query(
        { role: 'service', reason: 'usage' },
        'select file_bytes, file_count from storage_usage',
      )
      return { file_bytes: Number(rows[0]?.['file_bytes'] ?? 0), file_count: Number(rows[0]?.['file_count'] ?? 0) }
    },
    evict(tenantId) {
      collector.evict(tenantId)
      void records.release(tenantId)
    },
    async removeData(tenantId) {
      phantoms.delete(tenantId)
      cache.evict(tenantId)
      await backend.removeTenant(tenantId)
    },
  }
}
