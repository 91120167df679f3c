// A gateway serves from the routes that it kept until the control plane has told it those of this start; and where a port was
// taken meanwhile, the kept ones lead to whoever has it now.
import { setTimeout as sleep } from 'node:timers/promises'

const maxMilliseconds = 15_000
const pauseMilliseconds = 20

/** @throws Error when the gateway has not heard of all routes in time */
export async function untilRoutesAreKnown(gatewayUrl: string, signal: AbortSignal): Promise<void> {
  const deadline = performance.now() + maxMilliseconds
  while (!(await areRoutesKnown(gatewayUrl, signal))) {
    if (performance.now() > deadline) throw new Error('the gateway has not heard of its routes from the control plane')
    await sleep(pauseMilliseconds, undefined, { signal })
  }
}

async function areRoutesKnown(gatewayUrl: string, signal: AbortSignal): Promise<boolean> {
  const response = await fetch(`${gatewayUrl}/health`, {
    signal: AbortSignal.any([signal, AbortSignal.timeout(1_000)]),
  }).catch(() => undefined)
  const body: unknown = await response?.json().catch(() => undefined)
  return typeof body === 'object' && body !== null && 'routes_synced' in body && body.routes_synced === true
}
