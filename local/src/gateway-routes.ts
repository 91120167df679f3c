// A gateway serves stored routes until the control plane has sent those of this start. If a port was taken meanwhile,
// stored routes lead to another program.
import { setTimeout as sleep } from 'node:timers/promises'

const maxMilliseconds = 15_000
const pauseMilliseconds = 20

/** Waits for the routes. @throws Error if the gateway has not received all routes in time */
export async function waitForRoutes(gatewayUrl: string, signal: AbortSignal): Promise<void> {
  const deadline = performance.now() + maxMilliseconds
  while (!(await areRoutesKnown(gatewayUrl, signal))) {
    if (performance.now() > deadline) throw new Error('The gateway has not received its routes from the control plane.')
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
