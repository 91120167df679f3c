// Asks the control plane to wake a paused tenant.
import { internalPaths } from '@tenantry/contract'
import { ControlRejected, postToControl, type ControlPlane } from '../control-call.ts'

/** Returns when the control plane has taken the order; the tenant is awake when its route says so. */
export type Wake = (tenantId: string, signal: AbortSignal) => Promise<void>

/** The control plane will not wake the tenant: asking again at once changes nothing. */
export class WakeRejected extends Error {}

const timeoutMilliseconds = 5_000

export function wakeThrough(control: ControlPlane): Wake {
  return async (tenantId, signal) => {
    try {
      const response = await postToControl(control, internalPaths.wake(tenantId), {
        timeout: timeoutMilliseconds,
        signal,
      })
      await response.body?.cancel()
    } catch (cause) {
      throw cause instanceof ControlRejected && cause.status < 500 ? new WakeRejected(cause.message) : cause
    }
  }
}
