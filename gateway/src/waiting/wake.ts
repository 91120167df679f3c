// Asks the control plane to wake a paused tenant.
import { internalPaths, internalTokenHeader } from '@tenantry/contract'

/** Returns when the control plane has taken the order; the tenant is awake when its route says so. */
export type Wake = (tenantId: string, signal: AbortSignal) => Promise<void>

/** The control plane will not wake the tenant: asking again at once changes nothing. */
export class WakeRefused extends Error {}

export interface WakeOptions {
  controlUrl: string
  internalToken: string
  fetch: typeof globalThis.fetch
}

const timeoutMilliseconds = 5_000

export function wakeThrough({ controlUrl, internalToken, fetch }: WakeOptions): Wake {
  return async (tenantId, signal) => {
    const response = await fetch(`${controlUrl}${internalPaths.wake(tenantId)}`, {
      method: 'POST',
      headers: { [internalTokenHeader]: internalToken },
      redirect: 'error',
      signal: AbortSignal.any([signal, AbortSignal.timeout(timeoutMilliseconds)]),
    })
    await response.body?.cancel()
    if (response.ok) return
    const message = `the control plane answered ${response.status}`
    throw response.status < 500 ? new WakeRefused(message) : new Error(message)
  }
}
