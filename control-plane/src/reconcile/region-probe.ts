// Calls to a region's runtimes and gateways about tenants, with which the reconciler observes their state.
import {
  Activity,
  AppliedRoute,
  HomeCounters,
  StorageState,
  TenantHealth,
  TenantStorageUsage,
  internalPaths,
  internalTokenHeader,
  sentToken,
  type HomeStructure,
  type InternalToken,
} from '@tenantry/contract'
import type { Static, TSchema } from 'typebox'
import { Value } from 'typebox/value'
import type { Clock } from '../platform/clock.ts'
import { isDedicated } from './region.ts'

const callMilliseconds = 2_000
/** Time limit of calls for counters: a home's counters are added up, and sometimes its file store is scanned. */
const countersMilliseconds = 30_000
/** Maximum size of a response. The longest is a gateway's activity, which lists all its tenants. */
const maxResponseBytes = 4 * 1024 * 1024

/**
 * Returns what a runtime checks of a home whose structure the caller knows. A tenant's own runtime checks it in any case, which
 * takes little time, because no other homes are in its database.
 */
export function knownStructure(tenant: Parameters<typeof isDedicated>[0]): HomeStructure {
  return isDedicated(tenant) ? 'checked' : 'trusted'
}

/**
 * Calls of the control plane to a region's runtimes and gateways about one tenant. Each throws if there is no valid
 * response in time.
 */
export interface RegionProbe {
  /**
   * Returns a tenant's health; undefined if the runtime does not know the tenant.
   * @param structure `checked` by default
   * @throws Error if the call fails
   */
  tenantHealth(
    runtimeUrl: string,
    tenantId: string,
    signal: AbortSignal,
    structure?: HomeStructure,
  ): Promise<TenantHealth | undefined>
  /**
   * Returns the tenant's stored bytes and rows; undefined if the runtime does not know the tenant.
   * @throws Error if the call fails
   */
  tenantUsage(runtimeUrl: string, tenantId: string, signal: AbortSignal): Promise<TenantStorageUsage | undefined>
  /** Returns a tenant's route; undefined if the gateway has none. */
  route(gatewayUrl: string, tenantId: string, signal: AbortSignal): Promise<AppliedRoute | undefined>
  /** Returns the times at which the gateway last received a request for each tenant. */
  activity(gatewayUrl: string, signal: AbortSignal): Promise<Activity | undefined>
  /** Destroys the tenant's files and evicts the tenant. */
  removeData(runtimeUrl: string, tenantId: string, signal: AbortSignal): Promise<void>
}

/** Calls to runtimes about the state of tenants' stores of files. */
export interface StorageProbe {
  /** Returns the state of the stores of all tenants of a runtime. @throws Error if the call fails */
  storageState(runtimeUrl: string, signal: AbortSignal): Promise<StorageState | undefined>
  /**
   * Returns the state of the store of a tenant's own runtime; undefined if it does not know the tenant. @throws Error
   * if the call fails
   */
  tenantStorageState(runtimeUrl: string, tenantId: string, signal: AbortSignal): Promise<StorageState | undefined>
}

/** The call to a runtime for the counters of a tenant's home, from which the ledger takes its hours. */
export interface CountersProbe {
  /**
   * Returns the counters of this hour and of the `hours` before it; undefined if the runtime does not know the tenant.
   * @throws Error if the call fails or the response is not valid
   */
  tenantRecords(
    runtimeUrl: string,
    tenantId: string,
    hours: number,
    signal: AbortSignal,
  ): Promise<HomeCounters | undefined>
}

/**
 * Creates the probe over HTTP. Calls end after 2 s, those for counters after 30 s and the removal of data after 60 s;
 * responses are limited to 4 MiB.
 */
export function createRegionProbe(
  internalToken: InternalToken,
  fetch: typeof globalThis.fetch,
): RegionProbe & StorageProbe & CountersProbe {
  const call = async (method: string, base: string, path: string, signal: AbortSignal, milliseconds: number) =>
    fetch(new URL(path, base), {
      method,
      headers: { [internalTokenHeader]: sentToken(internalToken) },
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
    if (!Value.Check(schema, body)) throw new Error(`Invalid response to ${path} (status ${response.status}).`)
    return body
  }

  return {
    tenantHealth: (base, tenantId, signal, structure) =>
      read(TenantHealth, base, internalPaths.tenantHealth(tenantId, structure), signal).then((response) =>
        checkTenant(tenantId, response),
      ),
    tenantUsage: (base, tenantId, signal) =>
      read(TenantStorageUsage, base, internalPaths.tenantUsage(tenantId), signal).then((response) =>
        checkTenant(tenantId, response),
      ),
    tenantRecords: (base, tenantId, hours, signal) =>
      read(
        HomeCounters,
        base,
        `${internalPaths.tenantRecords(tenantId)}?hours=${hours}`,
        signal,
        countersMilliseconds,
      ).then((response) => checkTenant(tenantId, response)),
    storageState: (base, signal) => read(StorageState, base, internalPaths.storageState, signal),
    tenantStorageState: (base, tenantId, signal) =>
      read(StorageState, base, internalPaths.tenantStorageState(tenantId), signal),
    route: (base, tenantId, signal) => read(AppliedRoute, base, internalPaths.route(tenantId), signal),
    activity: (base, signal) => read(Activity, base, internalPaths.activity, signal),
    async removeData(base, tenantId, signal) {
      const response = await call('DELETE', base, internalPaths.tenantData(tenantId), signal, 60_000)
      await response.body?.cancel()
      if (!response.ok) throw new Error(`The runtime responded with ${response.status} to the removal of data.`)
    },
  }
}

/** Checks that a response is about the tenant: a tenant's own runtime may send one about another. */
function checkTenant<T extends { tenant_id: string }>(tenantId: string, response: T | undefined): T | undefined {
  if (response !== undefined && response.tenant_id !== tenantId)
    throw new Error('The response is about another tenant.')
  return response
}

/** Reads a bounded text: a tenant's own runtime may respond with any text of any length. */
async function boundedText(response: Response): Promise<string> {
  const chunks: Uint8Array[] = []
  let bytes = 0
  for await (const chunk of (response.body ?? []) as AsyncIterable<Uint8Array>) {
    bytes += chunk.byteLength
    if (bytes > maxResponseBytes) throw new Error(`The response exceeds ${maxResponseBytes} bytes.`)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString('utf8')
}

/** Polls every runtime or gateway of a region until all agree, or the signal aborts. */
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
