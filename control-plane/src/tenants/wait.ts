// `Prefer: wait=N`: holds an answer until the operation has ended, or N seconds.
import type { FastifyRequest } from 'fastify'
import type { Tenant } from './tenant.ts'
import type { TenantStore, TenantWrite } from './tenant-store.ts'

/** What `waitUntilSettled` needs. */
export interface WaitDeps {
  tenants: TenantStore
  changes: {
    /** Resolves when the tenant was next observed, when changes may have been missed, or when the signal aborts. */
    next(tenantId: string, signal: AbortSignal): Promise<void>
  }
}

/**
 * Waits until the operation of a write has ended, for `seconds` at most, or until the caller has gone.
 * @returns tenant and operation as they are at the end; the tenant as last seen when it is gone by then
 */
export async function waitUntilSettled(
  deps: WaitDeps,
  write: TenantWrite,
  seconds: number,
  request: FastifyRequest,
  isSettled: (tenant: Tenant) => boolean = () => false,
): Promise<TenantWrite> {
  if (seconds === 0) return write
  const gone = new AbortController()
  request.raw.socket.once('close', () => gone.abort())
  const signal = AbortSignal.any([gone.signal, AbortSignal.timeout(seconds * 1000)])
  for (;;) {
    // Subscribed before looking, so that no change falls between.
    const change = deps.changes.next(write.tenant.id, signal)
    const operation = (await deps.tenants.getOperation(write.operation.id)) ?? write.operation
    const tenant = await deps.tenants.get(write.tenant.id)
    if (operation.finishedAt !== undefined || signal.aborted || tenant === undefined || isSettled(tenant)) {
      return { tenant: tenant ?? write.tenant, operation }
    }
    await change
  }
}
