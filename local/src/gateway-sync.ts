// A gateway serves stored routes until the control plane has sent those of this start. If a port was taken meanwhile,
// stored routes lead to another program. It rejects requests of tenants with a quota until its first lease, so the first
// response of the control plane to a call for leases is waited for, too.
import { setTimeout as sleep } from 'node:timers/promises'
import { Type } from 'typebox'
import { Value } from 'typebox/value'

const syncedHealth = Type.Object({ routes_synced: Type.Literal(true), quotas_synced: Type.Literal(true) })

const maxMilliseconds = 60_000
const pauseMilliseconds = 20

/** Waits for the routes and the leases. @throws Error if the gateway has not received them in time */
export async function waitForGateway(gatewayUrl: string, signal: AbortSignal): Promise<void> {
  const deadline = performance.now() + maxMilliseconds
  while (!(await isSynced(gatewayUrl, signal))) {
    if (performance.now() > deadline)
      throw new Error('The gateway has not received its routes and quotas from the control plane.')
    await sleep(pauseMilliseconds, undefined, { signal })
  }
}

async function isSynced(gatewayUrl: string, signal: AbortSignal): Promise<boolean> {
  const response = await fetch(`${gatewayUrl}/health`, {
    signal: AbortSignal.any([signal, AbortSignal.timeout(1_000)]),
  }).catch(() => undefined)
  const body: unknown = await response?.json().catch(() => undefined)
  return Value.Check(syncedHealth, body)
}
