// File storage (specification, section 1.1) as an area of the runtime.
import { randomUUID } from 'node:crypto'
import type { Area } from '../tenancy/area.ts'
import type { Tenant } from '../tenancy/tenant.ts'
import { addAbsentFeatureRoutes } from './absent-features.ts'
import type { BlobBackend } from './backend/backend.ts'
import { blobIds } from './backend/blob-ids.ts'
import { addBucketRoutes } from './buckets/bucket-routes.ts'
import { Collector } from './collector.ts'
import type { StorageFailpoint } from './failpoints.ts'
import { addHoldRoutes } from './hold-routes.ts'
import { BlobMemory } from './objects/blob-memory.ts'
import { addObjectRoutes } from './objects/object-routes.ts'
import { addRemoveRoutes } from './objects/remove-routes.ts'
import { StoredFiles } from './objects/stored-files.ts'
import { uploadBooks } from './objects/upload-books.ts'
import { addUploadRoutes } from './objects/upload-routes.ts'
import { addSignRoutes } from './signing/sign-routes.ts'
import { addStateRoutes } from './state-routes.ts'
import { defaultStorageLimits, type StorageLimits } from './storage-limits.ts'
import { addSweepRoutes } from './sweep-routes.ts'
import { storeProblem } from './store-mark.ts'

export interface StorageAreaOptions {
  backend: BlobBackend
  tenants: () => Iterable<Tenant>
  failpoint: StorageFailpoint
  limits?: StorageLimits
  now: () => number
  onProblem: (problem: Error) => void
  sweepMilliseconds?: number
  abandonedMilliseconds?: number
}

export interface StorageArea extends Area {
  readonly collector: Collector
  /** For other parts of the runtime. */
  readonly files: StoredFiles
  /** Objects found without their file since the start. */
  readonly phantoms: () => number
  /** Resolves when nothing is being collected, and no intent stands that no upload has. */
  idle(): Promise<void>
}

export function createStorageArea(options: StorageAreaOptions): StorageArea {
  const { backend, failpoint, limits = defaultStorageLimits, now, onProblem } = options
  const collector = new Collector(options)
  const memory = new BlobMemory()
  const freshBlobId = blobIds(randomUUID)
  const books = uploadBooks(freshBlobId)
  const idle = async () => {
    await books.giveBack()
    await collector.idle()
  }
  const phantoms = new Map<string, number>()
  const onPhantom = (tenantId: string, objectId: string) => {
    phantoms.set(tenantId, (phantoms.get(tenantId) ?? 0) + 1)
    onProblem(new Error(`${tenantId}: the object ${objectId} has no file`))
  }
  const deps = { backend, memory, collector, failpoint, limits, onPhantom, now, freshBlobId, books }
  return {
    name: 'storage',
    collector,
    files: new StoredFiles(deps),
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
    },
    start: () => backend.start(),
    run: (signal) => collector.run(signal),
    close: idle,
    async health(tenant) {
      const observed_at = new Date(now()).toISOString()
      try {
        const problem = (await backend.problem()) ?? (await storeProblem(backend, tenant))
        return problem === undefined
          ? { status: 'healthy', observed_at }
          : { status: 'unhealthy', observed_at, message: problem }
      } catch {
        return { status: 'unhealthy', observed_at, message: 'the storage does not answer' }
      }
    },
    async usage(tenant) {
      const { rows } = await tenant.database.query(
        { role: 'service', reason: 'usage' },
        'select file_bytes, file_count from storage_usage',
      )
      return { file_bytes: Number(rows[0]?.['file_bytes'] ?? 0), file_count: Number(rows[0]?.['file_count'] ?? 0) }
    },
    forget(tenantId) {
      collector.forget(tenantId)
      void books.giveBack(tenantId)
    },
    async removeData(tenantId) {
      phantoms.delete(tenantId)
      memory.forget(tenantId)
      await backend.removeTenant(tenantId)
    },
  }
}
