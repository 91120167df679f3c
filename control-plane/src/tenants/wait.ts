// `Prefer: wait=N`: delays a response until the operation has ended, at most for N seconds.
import type { FastifyRequest } from 'fastify'
import type { Tenant } from './tenant.ts'
import type { TenantWrite } from './tenant-write.ts'
import type { TenantStore } from './store.ts'

/** Dependencies of `waitUntilSettled`. */
export interface WaitDeps {
  tenants: TenantStore
  changes: {
    /** Resolves at the tenant's next observation, when changes may have been missed, or when the signal aborts. */
    next(tenantId: string, signal: AbortSignal): Promise<void>
  }
}

/**
 * Waits until the operation of a write has ended, at most for `seconds`, or until the client has disconnected.
 * @returns tenant and operation at the end of the wait; the last known tenant if it was removed
 */
export async function waitUntilSettled(
  deps: WaitDeps,
  write: TenantWrite,
  seconds: number,
  request: FastifyRequest,
  isSettled?: (tenant: Tenant) => boolean,
): Promise<TenantWrite> {
  if (seconds === 0) return write
  const gone = new AbortController()
  request.raw.socket.once('close', () => gone.abort())
  const signal = AbortSignal.any([gone.signal, AbortSignal.timeout(seconds * 1000)])
  for (;;) {
    // The subscription begins before the read, so that no change is missed between them.
    const change = deps.changes.next(write.tenant.id, signal)
    const operation = (await deps.tenants.getOperation(write.operation.id)) ?? write.operation
    const hasEnded = operation.finishedAt !== undefined || signal.aborted
    const tenant = hasEnded || isSettled !== undefined ? await deps.tenants.get(write.tenant.id) : write.tenant
    if (hasEnded || tenant === undefined || isSettled?.(tenant) === true)
      return { tenant: tenant ?? write.tenant, operation }
    await change
  }
}
