// What an area of the runtime (storage, REST, functions, events) is to the core.
import type { ComponentHealth, TenantStorageUsage } from '@tenantry/contract'
import type { FastifyPluginAsync } from 'fastify'
import type { Tenant } from './tenant.ts'

export interface RuntimeModule {
  readonly name: 'storage' | 'rest' | 'functions' | 'events' | 'metering'
  readonly routes: FastifyPluginAsync
  /** Once, before the runtime listens; throws when the area can't work. */
  start(): Promise<void>
  /** Background work; returns when aborted and drained. */
  run(signal: AbortSignal): Promise<void>
  /** Once nothing is served any more. */
  close(): Promise<void>
  health(tenant: Tenant, signal: AbortSignal): Promise<ComponentHealth>
  /** The area's part of what the tenant has stored. */
  usage(tenant: Tenant): Promise<Partial<Omit<TenantStorageUsage, 'tenant_id'>>>
  /** Drops what is held in memory of a tenant that is gone or has changed. */
  evict(tenantId: string): void
  /** Destroys what the area keeps outside the tenant's database. Idempotent. */
  removeData(tenantId: string, signal: AbortSignal): Promise<void>
}
