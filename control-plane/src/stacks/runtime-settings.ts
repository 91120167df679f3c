// The settings of a region's runtimes and gateway that follow from its file: storage, signed URLs, paths and the way out. Pure.
import { hostsOf, type ContainerSettings } from './container-settings.ts'
import { SecretText } from './secret-text.ts'
import { ports } from './tenant-services.ts'

type EnvironmentOf = Readonly<Record<string, string>>

/** Name of the file with the secret key of the storage, inside the runtimes' containers. */
const s3SecretName = 's3-secret-access-key'

/** Returns the settings of all runtimes of a region, tenants' own included. */
export function runtimeEnvironment({
  egress,
  signed_urls: signed,
  max_path_bytes: pathBytes,
  realtime_compression: compresses,
}: ContainerSettings): EnvironmentOf {
  return defined({
    // Every network of runtimes has the gateway under this name.
    TENANTRY_EGRESS_PROXY: egress === undefined ? undefined : `http://gateway:${ports.egress}`,
    TENANTRY_SIGNED_URL_SECONDS: signed?.default_seconds,
    TENANTRY_MAX_SIGNED_URL_SECONDS: signed?.max_seconds,
    TENANTRY_MAX_PATH_BYTES: pathBytes,
    TENANTRY_REALTIME_COMPRESSION: compresses === true ? 1 : undefined,
  })
}

/** Returns the setting that names the runtimes of the same tenants; none for fewer than two. @param names their host names */
export function siblingHosts(names: readonly string[]): EnvironmentOf {
  return names.length < 2 ? {} : { TENANTRY_SIBLING_HOSTS: names.map((name) => `${name}:${ports.runtime}`).join(',') }
}

/**
 * Returns the settings of the shared runtimes' storage. Tenants' own runtimes do not get its credentials, which open the files
 * of all tenants.
 */
export function storageEnvironment({ storage }: ContainerSettings): EnvironmentOf {
  if (storage === undefined) return {}
  const { backend, fallback, s3 } = storage
  return defined({ TENANTRY_STORAGE_BACKEND: backend, TENANTRY_STORAGE_FALLBACK: fallback, ...bucketSettings(s3) })
}

/** Returns the settings of the gateways' storage relay: the bucket and its credentials. */
export function storageRelayEnvironment({ storage }: ContainerSettings): EnvironmentOf {
  if (storage === undefined) return {}
  return defined({ TENANTRY_STORAGE_RELAY_PORT: ports.storageRelay, ...bucketSettings(storage.s3) })
}

/** Returns the settings of the storage of a tenant's own runtimes on several hosts: the bucket, by way of the relay. */
export function relayedStorageEnvironment({ storage }: ContainerSettings, tenantId: string): EnvironmentOf {
  if (storage === undefined) return {}
  return defined({
    TENANTRY_STORAGE_BACKEND: 's3',
    ...bucketSettings({
      ...storage.s3,
      endpoint: `http://gateway:${ports.storageRelay}`,
      path_style: true,
      access_key_id: tenantId,
    }),
  })
}

function bucketSettings(s3: StorageServer): Record<string, string | number | undefined> {
  return {
    TENANTRY_S3_ENDPOINT: s3.endpoint,
    TENANTRY_S3_REGION: s3.region,
    TENANTRY_S3_BUCKET: s3.bucket,
    TENANTRY_S3_PREFIX: s3.prefix,
    TENANTRY_S3_PATH_STYLE: s3.path_style === undefined ? undefined : Number(s3.path_style),
    TENANTRY_S3_ACCESS_KEY_ID: s3.access_key_id,
    TENANTRY_S3_SECRET_ACCESS_KEY_FILE: `/run/secrets/${s3SecretName}`,
  }
}

/** Returns the secrets of that storage by file name. @param key the secret key; undefined without a storage */
export function storageSecrets(key: string | undefined): Readonly<Record<string, SecretText>> {
  return key === undefined ? {} : { [s3SecretName]: new SecretText(key) }
}

/** Returns the settings of the egress proxy in a gateway that the control plane creates. */
export function egressEnvironment(settings: ContainerSettings): EnvironmentOf {
  const { egress, storage, gateway } = settings
  if (egress === undefined) return {}
  const host = 'host_address' in gateway ? [gateway.host_address] : hostsOf(settings).map(({ address }) => address)
  return defined({
    TENANTRY_EGRESS_PORT: ports.egress,
    TENANTRY_EGRESS_STORAGE: storage === undefined ? undefined : storageHost(storage.s3),
    TENANTRY_EGRESS_MAY_REACH: egress.may_reach?.join(','),
    TENANTRY_EGRESS_FORBIDDEN: [...host, ...(egress.forbidden ?? [])].join(','),
  })
}

/** Returns `host:port` of an S3 server, as the runtimes connect to it. */
export function storageHost({ endpoint, bucket, path_style: isPathStyle = true }: StorageServer): string {
  const { protocol, hostname, port } = new URL(endpoint)
  const host = isPathStyle ? hostname : `${bucket}.${hostname}`
  return `${host}:${port === '' ? (protocol === 'https:' ? 443 : 80) : port}`
}

type StorageServer = NonNullable<ContainerSettings['storage']>['s3']

function defined(settings: Record<string, string | number | undefined>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(settings).flatMap(([name, value]) =>
      value === undefined || value === '' ? [] : [[name, String(value)]],
    ),
  )
}
