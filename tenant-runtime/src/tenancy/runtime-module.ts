// The interface of the runtime's modules (storage, REST, functions, events, realtime, metering) to the core.
import type { ComponentHealth, TenantStorageUsage } from '@tenantry/contract'
import type { FastifyPluginAsync } from 'fastify'
import type { Tenant } from './tenant.ts'

export interface RuntimeModule {
  readonly name: 'storage' | 'rest' | 'functions' | 'events' | 'realtime' | 'metering'
  readonly routes: FastifyPluginAsync
  /** Starts the module, once, before the runtime listens. Rejects when the module cannot work. */
  start(): Promise<void>
  /** Runs background work, and returns when it is aborted and drained. */
  run(signal: AbortSignal): Promise<void>
  /** Closes the module after the last request. */
  close(): Promise<void>
  health(tenant: Tenant, signal: AbortSignal): Promise<ComponentHealth>
  /** Returns the module's part of the tenant's stored usage. */
  usage(tenant: Tenant): Promise<Partial<Omit<TenantStorageUsage, 'tenant_id'>>>
  /** Evicts a tenant from memory that was deleted or has changed. */
  evict(tenantId: string): void
  /** Deletes the data that the module stores outside the tenant's database. Idempotent. */
  removeData(tenantId: string, signal: AbortSignal): Promise<void>
}
