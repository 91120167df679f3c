// A gateway serves stored routes until the control plane has sent those of this start. If a port was taken meanwhile,
// stored routes lead to another program. It rejects requests of tenants with a quota until its first lease, so the first
// response of the control plane to a call for leases is waited for, too.
import { setTimeout as sleep } from 'node:timers/promises'
import { internalPaths } from '@tenantry/contract'
import { Type, type TSchema } from 'typebox'
import { Value } from 'typebox/value'

const Synced = Type.Object({ routes_synced: Type.Literal(true), quotas_synced: Type.Literal(true) })
const Settled = Type.Object({ quotas_synced: Type.Literal(true), earlier_counts_acknowledged: Type.Literal(true) })

const maxMilliseconds = 60_000
const pauseMilliseconds = 20

/**
 * Waits for the routes and the leases of all gateways.
 * @param urls of the gateways' internal listeners
 * @throws Error if a gateway has not received them in time
 */
export async function waitForGateways(urls: readonly string[], signal: AbortSignal): Promise<void> {
  const wait = (url: string) =>
    untilLive(url, Synced, 'The gateway has not received its routes and quotas from the control plane.', signal)
  await Promise.all(urls.map(wait))
}

/**
 * Waits until the control plane has all that earlier starts of a gateway counted.
 * @throws Error if it has not in time
 */
export async function waitForEarlierCounts(url: string, signal: AbortSignal): Promise<void> {
  await untilLive(url, Settled, 'The gateway could not send the counts of an earlier start.', signal)
}

async function untilLive(url: string, wanted: TSchema, failure: string, signal: AbortSignal): Promise<void> {
  const deadline = performance.now() + maxMilliseconds
  while (!Value.Check(wanted, await liveness(url, signal))) {
    if (performance.now() > deadline) throw new Error(failure)
    await sleep(pauseMilliseconds, undefined, { signal })
  }
}

async function liveness(url: string, signal: AbortSignal): Promise<unknown> {
  const response = await fetch(`${url}${internalPaths.live}`, {
    signal: AbortSignal.any([signal, AbortSignal.timeout(1_000)]),
  }).catch(() => undefined)
  return response?.json().catch(() => undefined)
}
