// What a region's runtimes and gateways say of a tenant: the observing half of the reconciler.
import {
  Activity,
  AppliedRoute,
  HomeCounters,
  StorageState,
  TenantHealth,
  TenantStorageUsage,
  internalPaths,
  internalTokenHeader,
} from '@tenantry/contract'
import type { Static, TSchema } from 'typebox'
import { Value } from 'typebox/value'
import type { Clock } from '../platform/clock.ts'

const callMilliseconds = 2_000
/** A home's records are summed up, and sometimes its store is looked through. */
const countersMilliseconds = 30_000
/** The longest is a gateway's activity, of all its tenants. */
const maxResponseBytes = 4 * 1024 * 1024

/**
 * Calls of the control plane to a region's runtimes and gateways about one tenant. Each throws when there is no valid
 * answer in time.
 */
export interface RegionProbe {
  /** Undefined when the runtime does not know the tenant. @throws Error when it can't be asked */
  tenantHealth(runtimeUrl: string, tenantId: string, signal: AbortSignal): Promise<TenantHealth | undefined>
  /**
   * What the tenant has stored now. Undefined when the runtime does not know the tenant. @throws Error when it can't be
   * asked
   */
  tenantUsage(runtimeUrl: string, tenantId: string, signal: AbortSignal): Promise<TenantStorageUsage | undefined>
  /** Undefined when the gateway has no route. */
  route(gatewayUrl: string, tenantId: string, signal: AbortSignal): Promise<AppliedRoute | undefined>
  /** When the gateway last saw each tenant asked for. */
  activity(gatewayUrl: string, signal: AbortSignal): Promise<Activity | undefined>
  /** Destroys the tenant's files and forgets the tenant. */
  removeData(runtimeUrl: string, tenantId: string, signal: AbortSignal): Promise<void>
}

/** Calls to runtimes about the state of tenants' stores of files. */
export interface StorageProbe {
  /** What the runtime has to tell of the stores of all its tenants. @throws Error when it can't be asked */
  storageState(runtimeUrl: string, signal: AbortSignal): Promise<StorageState | undefined>
  /** What a tenant's own runtime reports of its store. Undefined when it does not know the tenant. @throws Error when it can't be asked */
  tenantStorageState(runtimeUrl: string, tenantId: string, signal: AbortSignal): Promise<StorageState | undefined>
}

/** The call to a runtime for the books of a tenant's home, from which the ledger takes its hours. */
export interface CountersProbe {
  /**
   * Of this hour and `hours` before it. Undefined when the runtime does not know the tenant.
   * @throws Error when it can't be asked, or say
   */
  tenantRecords(
    runtimeUrl: string,
    tenantId: string,
    hours: number,
    signal: AbortSignal,
  ): Promise<HomeCounters | undefined>
}

/**
 * Makes the probe over HTTP. Calls end after 2 s, those for books after 30 s and the removal of data after 60 s;
 * answers are bounded to 4 MiB.
 */
export function createRegionProbe(
  internalToken: string,
  fetch: typeof globalThis.fetch,
): RegionProbe & StorageProbe & CountersProbe {
  const call = async (method: string, base: string, path: string, signal: AbortSignal, milliseconds: number) =>
    fetch(new URL(path, base), {
      method,
      headers: { [internalTokenHeader]: internalToken },
      signal: AbortSignal.any([signal, AbortSignal.timeout(milliseconds)]),
    })

  const read = async <S extends TSchema>(
    schema: S,
    base: string,
    path: string,
    signal: AbortSignal,
    milliseconds = callMilliseconds,
  ): Promise<Static<S> | undefined> => {
    const response = await call('GET', base, path, signal, milliseconds)
    if (response.status === 404) {
      await response.body?.cancel()
      return undefined
    }
    const body: unknown = JSON.parse(await boundedText(response))
    if (!Value.Check(schema, body)) throw new Error(`${path} was answered ${response.status} in an unknown form`)
    return body
  }

  return {
    tenantHealth: (base, tenantId, signal) =>
      read(TenantHealth, base, internalPaths.tenantHealth(tenantId), signal).then((response) =>
        about(tenantId, response),
      ),
    tenantUsage: (base, tenantId, signal) =>
      read(TenantStorageUsage, base, internalPaths.tenantUsage(tenantId), signal).then((response) =>
        about(tenantId, response),
      ),
    tenantRecords: (base, tenantId, hours, signal) =>
      read(
        HomeCounters,
        base,
        `${internalPaths.tenantRecords(tenantId)}?hours=${hours}`,
        signal,
        countersMilliseconds,
      ).then((response) => about(tenantId, response)),
    storageState: (base, signal) => read(StorageState, base, internalPaths.storageState, signal),
    tenantStorageState: (base, tenantId, signal) =>
      read(StorageState, base, internalPaths.tenantStorageState(tenantId), signal),
    route: (base, tenantId, signal) => read(AppliedRoute, base, internalPaths.route(tenantId), signal),
    activity: (base, signal) => read(Activity, base, internalPaths.activity, signal),
    async removeData(base, tenantId, signal) {
      const response = await call('DELETE', base, internalPaths.tenantData(tenantId), signal, 60_000)
      await response.body?.cancel()
      if (!response.ok) throw new Error(`the runtime answered ${response.status} to the removal of data`)
    },
  }
}

/** A tenant's own runtime may answer for another one. */
function about<T extends { tenant_id: string }>(tenantId: string, response: T | undefined): T | undefined {
  if (response !== undefined && response.tenant_id !== tenantId) throw new Error('the answer is about another tenant')
  return response
}

/** What a tenant's own runtime says may be anything, and of any length. */
async function boundedText(response: Response): Promise<string> {
  const chunks: Uint8Array[] = []
  let bytes = 0
  for await (const chunk of (response.body ?? []) as AsyncIterable<Uint8Array>) {
    bytes += chunk.byteLength
    if (bytes > maxResponseBytes) throw new Error(`an answer of more than ${maxResponseBytes} bytes`)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString('utf8')
}

/** Asks every runtime of a region until all agree, or the signal aborts. */
export async function untilEvery(
  urls: readonly string[],
  agrees: (url: string, signal: AbortSignal) => Promise<boolean>,
  signal: AbortSignal,
  clock: Clock,
): Promise<void> {
  await Promise.all(
    urls.map(async (url) => {
      let delay = 2
      for (;;) {
        if (await agrees(url, signal)) return
        signal.throwIfAborted()
        await clock.sleep(delay, signal)
        delay = Math.min(delay * 1.6, 25)
      }
    }),
  )
}
