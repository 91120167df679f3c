// Reads the settings of the storage relay.
import { ConfigurationError, type Environment, type gatewaySettings } from '@tenantry/contract'
import type { RelayedBucket } from './storage-relay.ts'

/** The storage relay of a gateway: its port and its bucket. */
export interface StorageRelayConfig {
  readonly port: number
  readonly bucket: RelayedBucket
}

/** Reads the settings. @returns nothing without a port @throws ConfigurationError for a setting that is missing or wrong */
export function readStorageRelay(environment: Environment<keyof typeof gatewaySettings>): {
  storageRelay?: StorageRelayConfig
} {
  const port = environment.optional('TENANTRY_STORAGE_RELAY_PORT')
  if (port === undefined) return {}
  const endpoint = URL.parse(environment.required('TENANTRY_S3_ENDPOINT'))
  if (endpoint === null || !/^https?:$/.test(endpoint.protocol))
    throw new ConfigurationError('TENANTRY_S3_ENDPOINT must be a URL that begins with http:// or https://.')
  return {
    storageRelay: {
      port: Number(port),
      bucket: {
        endpoint,
        region: environment.optional('TENANTRY_S3_REGION') ?? 'us-east-1',
        bucket: environment.required('TENANTRY_S3_BUCKET'),
        prefix: environment.optional('TENANTRY_S3_PREFIX') ?? '',
        isPathStyle: environment.integer('TENANTRY_S3_PATH_STYLE', 1, 0, 1) === 1,
        accessKeyId: environment.required('TENANTRY_S3_ACCESS_KEY_ID'),
        secretAccessKey: environment.file('TENANTRY_S3_SECRET_ACCESS_KEY_FILE'),
      },
    },
  }
}
