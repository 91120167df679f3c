// Opens the storage relay of a gateway.
import type { InternalToken, LimitedReports } from '@tenantry/contract'
import type { StorageRelayConfig } from './relay-config.ts'
import { StorageRelay, type StorageRelayLimits } from './storage-relay.ts'

interface RelayDeps {
  internalToken: InternalToken
  limits: StorageRelayLimits
  now: () => number
  log: { warn(details: object, message: string): void }
  reports: LimitedReports<unknown>
}

/** Opens the relay; undefined without a configuration. */
export function openStorageRelay(
  config: StorageRelayConfig | undefined,
  { log, reports, ...deps }: RelayDeps,
): StorageRelay | undefined {
  if (config === undefined) return undefined
  const onRejected = (tenant: string) => {
    if (reports.isDue(tenant))
      log.warn({ tenant }, "A tenant's runtime requested files that are not the tenant's from the storage relay.")
  }
  return new StorageRelay({ ...deps, bucket: config.bucket, onRejected })
}
