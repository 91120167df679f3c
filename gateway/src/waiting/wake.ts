// Requests the control plane to wake a paused tenant.
import { internalPaths } from '@tenantry/contract'
import { ControlStatusError, postToControl, type ControlPlane } from '../control-call.ts'

/** Requests a wake, and returns when the control plane has accepted it. The tenant is awake when its route is ready. */
export type Wake = (tenantId: string, signal: AbortSignal) => Promise<void>

/** The error of a wake that the control plane rejected, so that an immediate retry is useless. */
export class WakeRejectedError extends Error {}

const timeoutMilliseconds = 5_000

export function wakeThrough(control: ControlPlane): Wake {
  return async (tenantId, signal) => {
    try {
      const response = await postToControl(control, internalPaths.wake(tenantId), {
        timeoutMs: timeoutMilliseconds,
        signal,
      })
      await response.body?.cancel()
    } catch (cause) {
      throw cause instanceof ControlStatusError && cause.status < 500 ? new WakeRejectedError(cause.message) : cause
    }
  }
}
