// Every setting of every part: its name in the environment, its meaning, and its origin. The parts read no other names,
// `npm start` passes on what operators may set, and docs/operate/configuration.md shows the tables.

/** One setting: an environment variable that a part reads. */
export interface Setting {
  /** Meaning of the value, in Markdown, for the table in docs/operate/configuration.md. */
  description: string
  /** Default in the same table; undefined if the part does not start without the setting, or needs no value. */
  fallback?: string
  /**
   * Origin of the value. `operator`: people set it, and `npm start` passes it on. `launcher`: the program that starts
   * the part sets it to match the other parts, as `npm start`, Compose and the control plane's stacks do.
   */
  setBy: 'operator' | 'launcher'
  /** Option of `npm start` that determines the value. */
  startOption?: string
  /** Whether the value is a path, which `npm start` makes absolute, because the parts run in another directory. */
  isPath?: true
}

/** Settings of a part by the names of their environment variables. */
export type Settings<Name extends string = string> = Readonly<Record<Name, Setting>>

const logLevel: Setting = {
  description: '`fatal`, `error`, `warn`, `info`, `debug`, `trace` or `silent`',
  fallback: '`info`',
  setBy: 'launcher',
  startOption: '--log-level',
}
const internalToken: Setting = {
  description: 'file with the token with which the parts authenticate to each other',
  setBy: 'launcher',
  isPath: true,
}
const restarts: Setting = {
  description: 'number of requested restarts; a change of it replaces the container',
  fallback: 'none',
  setBy: 'launcher',
}
const controlUrl: Setting = {
  description: 'URL of the control plane, or of a gateway that relays to it',
  setBy: 'launcher',
}
const installation: Setting = {
  description: 'name of the installation, a UUID, the same for docker-proxy and the control plane',
  fallback: 'generated at the first start',
  setBy: 'launcher',
}
const networkList = 'IPv4 and IPv6 networks, separated by commas'

/** Settings of the control plane. */
export const controlPlaneSettings = {
  TENANTRY_HOST: { description: 'address that it listens on', fallback: '`127.0.0.1`', setBy: 'launcher' },
  TENANTRY_PORT: { description: 'port that it listens on', fallback: '4400', setBy: 'launcher', startOption: '--port' },
  TENANTRY_CONTROL_DATABASE_URL: { description: 'URL of the control database, with a superuser', setBy: 'launcher' },
  TENANTRY_CONTROL_DATABASE_URL_FILE: {
    description: 'file with that URL, as an alternative',
    setBy: 'launcher',
    isPath: true,
  },
  TENANTRY_MASTER_KEY_FILE: {
    description: 'file with the master key: 32 bytes in base64',
    setBy: 'launcher',
    isPath: true,
  },
  TENANTRY_INTERNAL_TOKEN_FILE: internalToken,
  TENANTRY_REGIONS_FILE: { description: 'file that describes the regions', setBy: 'launcher', isPath: true },
  TENANTRY_PLATFORM_KEY_FILE: {
    description: 'file that the first platform key is written to',
    fallback: 'none: no key is created',
    setBy: 'launcher',
    isPath: true,
  },
  TENANTRY_INSTALLATION: installation,
  TENANTRY_HOME_MIGRATIONS: {
    description: "directory of the migrations of tenants' homes",
    fallback: "the runtime's",
    setBy: 'launcher',
    isPath: true,
  },
  TENANTRY_LOG_LEVEL: logLevel,
  TENANTRY_BACKUPS: {
    description: 'directory of [backups](../backups.md)',
    fallback: 'none: no backups are made',
    setBy: 'operator',
    isPath: true,
  },
  TENANTRY_WEBHOOKS_MAY_REACH: {
    description: `private networks that [webhooks](../webhooks.md) may be sent to; ${networkList}`,
    fallback: 'none; with `npm start` `127.0.0.0/8`',
    setBy: 'operator',
  },
  TENANTRY_DELETE_GRACE_SECONDS: {
    description: 'seconds between `DELETE` and the destruction of data',
    fallback: '604800 (7 days)',
    setBy: 'operator',
  },
  TENANTRY_ORPHAN_GRACE_SECONDS: {
    description: 'seconds without a tenant after which an object on an engine is removed',
    fallback: '3600 (1 h)',
    setBy: 'operator',
  },
  TENANTRY_PRICES_FILE: {
    description: '[price file](../invoices.md#the-file)',
    fallback: 'none: no invoices are made',
    setBy: 'operator',
    isPath: true,
  },
  TENANTRY_MAX_UPLOAD_BYTES: {
    description: 'maximum bytes of a file; a bucket may allow less',
    fallback: '100000000 (100 MB)',
    setBy: 'operator',
  },
  TENANTRY_RATE_LIMITS: {
    description: 'rates of plans at each gateway, such as `Free=50/200,Pro=none`',
    fallback: 'see [quotas](../quotas.md#the-rate)',
    setBy: 'operator',
  },
  TENANTRY_FAILPOINTS: {
    description: 'for tests: faults at named points of the reconciler',
    fallback: 'none',
    setBy: 'operator',
  },
} as const satisfies Settings

/** Settings of a gateway. */
export const gatewaySettings = {
  TENANTRY_HOST: { description: 'address of the public listeners', fallback: '`127.0.0.1`', setBy: 'launcher' },
  TENANTRY_PORT: { description: 'port of the public HTTP listener', setBy: 'launcher', startOption: '--port' },
  TENANTRY_INTERNAL_HOST: {
    description: 'address of the listener for the other parts',
    fallback: '`127.0.0.1`',
    setBy: 'launcher',
  },
  TENANTRY_INTERNAL_PORT: { description: 'port of the listener for the other parts', setBy: 'launcher' },
  TENANTRY_CONTROL_URL: controlUrl,
  TENANTRY_INTERNAL_TOKEN_FILE: internalToken,
  TENANTRY_DATA: {
    description: 'directory of its files: routes, counters, leases',
    setBy: 'launcher',
    startOption: '--data',
    isPath: true,
  },
  TENANTRY_DOMAIN: {
    description: 'domain of the tenants: they are served at `NAME.DOMAIN`',
    fallback: '`localhost`',
    setBy: 'launcher',
    startOption: '--domain',
  },
  TENANTRY_SOURCE: {
    description: 'name of this gateway in the usage that it reports; unique among the gateways',
    fallback: '`gateway-local-0`',
    setBy: 'launcher',
  },
  TENANTRY_LOG_LEVEL: logLevel,
  TENANTRY_RESTARTS: restarts,
  TENANTRY_POSTGRES_PORT: {
    description: "port for tenants' [SQL clients](../gateway.md)",
    fallback: 'none',
    setBy: 'operator',
  },
  TENANTRY_POSTGRES_TLS_CERT_FILE: {
    description: 'PEM file with the certificate chain of that port',
    fallback: 'no TLS',
    setBy: 'operator',
    isPath: true,
  },
  TENANTRY_POSTGRES_TLS_KEY_FILE: {
    description: 'PEM file with its key',
    fallback: 'no TLS',
    setBy: 'operator',
    isPath: true,
  },
  TENANTRY_TENANT_RANGE: {
    description: "IPv4 network of tenants' containers; the gateway limits their connections by address",
    fallback: 'none',
    setBy: 'operator',
  },
  TENANTRY_REGION_RANGE: {
    description: 'part of that network whose connections are not limited',
    fallback: 'none',
    setBy: 'operator',
  },
  TENANTRY_TRUSTED_PROXIES: {
    description:
      'IPv4 addresses and networks of proxies; the gateway passes on the client addresses and protocol that they report',
    fallback: 'none',
    setBy: 'operator',
  },
} as const satisfies Settings

/** Settings of a tenant runtime. */
export const runtimeSettings = {
  TENANTRY_HOST: { description: 'address that it listens on', fallback: '`127.0.0.1`', setBy: 'launcher' },
  TENANTRY_PORT: { description: 'port that it listens on', fallback: '24401', setBy: 'launcher' },
  TENANTRY_CONTROL_URL: controlUrl,
  TENANTRY_INTERNAL_TOKEN_FILE: internalToken,
  TENANTRY_DATA: {
    description: 'directory of its files: blobs, manifests',
    setBy: 'launcher',
    startOption: '--data',
    isPath: true,
  },
  TENANTRY_LOG_LEVEL: logLevel,
  TENANTRY_RESTARTS: restarts,
  TENANTRY_MAX_CONNECTIONS: {
    description: 'maximum connections to Postgres, for all tenants together',
    fallback: '100',
    setBy: 'launcher',
  },
  TENANTRY_SIBLINGS: {
    description: 'number of other runtimes that serve the same tenants',
    fallback: '0',
    setBy: 'launcher',
  },
  TENANTRY_FAILPOINTS: {
    description: 'for tests: kills at named points of storage',
    fallback: 'none',
    setBy: 'launcher',
  },
  TENANTRY_MAX_PATH_BYTES: {
    description: 'maximum length of the path of a new object, in bytes of UTF-8; at most 1024',
    fallback: '1024',
    setBy: 'operator',
  },
  TENANTRY_SIGNED_URL_SECONDS: {
    description: 'default validity of a signed URL, in seconds',
    fallback: '3600 (1 h)',
    setBy: 'operator',
  },
  TENANTRY_MAX_SIGNED_URL_SECONDS: {
    description: 'maximum validity of a signed URL, in seconds',
    fallback: '31536000 (365 days)',
    setBy: 'operator',
  },
  TENANTRY_REST_ROLLBACK: {
    description: '1: the runtime honours `Prefer: tx=rollback`, for development',
    fallback: '0',
    setBy: 'operator',
  },
  TENANTRY_FUNCTIONS_MAY_REACH: {
    description: "private networks that tenants' functions may fetch from, such as `10.1.0.0/16,fd12::/16`",
    fallback: 'none',
    setBy: 'operator',
  },
  TENANTRY_STORAGE_BACKEND: {
    description: '`local` or `s3`; see [file storage](file-storage.md)',
    fallback: '`local`',
    setBy: 'operator',
  },
  TENANTRY_STORAGE_FALLBACK: {
    description: 'the other backend, while you [move files](file-storage.md#move-files-to-another-backend)',
    fallback: 'none',
    setBy: 'operator',
  },
  TENANTRY_S3_ENDPOINT: {
    description: 'URL of the S3 server',
    fallback: "AWS' endpoint of the region",
    setBy: 'operator',
  },
  TENANTRY_S3_REGION: { description: "the server's region", fallback: '`us-east-1`', setBy: 'operator' },
  TENANTRY_S3_BUCKET: { description: "an existing bucket, for this installation's files only", setBy: 'operator' },
  TENANTRY_S3_PREFIX: {
    description: 'prefix of every key, with a slash at its end',
    fallback: 'none',
    setBy: 'operator',
  },
  TENANTRY_S3_PATH_STYLE: {
    description: '1: the bucket is part of the path; 0: part of the host name',
    fallback: '1 with an endpoint, otherwise 0',
    setBy: 'operator',
  },
  TENANTRY_S3_ACCESS_KEY_ID: { description: 'ID of the access key', setBy: 'operator' },
  TENANTRY_S3_SECRET_ACCESS_KEY_FILE: {
    description: "file with the secret key, readable by the runtime's user",
    setBy: 'operator',
    isPath: true,
  },
} as const satisfies Settings

/** Settings of docker-proxy. */
export const dockerProxySettings = {
  TENANTRY_DOCKER_PROXY_SOCKET: { description: 'socket that it listens on', setBy: 'launcher', isPath: true },
  TENANTRY_DOCKER_SOCKET: {
    description: "the Docker Engine's socket",
    fallback: '`/var/run/docker.sock`',
    setBy: 'launcher',
    isPath: true,
  },
  TENANTRY_INSTALLATION: {
    ...installation,
    description: 'name of the installation, 8 to 64 letters, digits and dashes',
  },
  TENANTRY_NETWORK_RANGE: { description: "network of all tenants' networks, CIDR", setBy: 'launcher' },
  TENANTRY_DOCKER_PROXY_IMAGES: {
    description: 'images that containers may run, separated by commas',
    setBy: 'launcher',
  },
  TENANTRY_DOCKER_PROXY_ATTACHED: {
    description: "containers that may be attached to tenants' networks, separated by commas",
    fallback: 'none',
    setBy: 'launcher',
  },
  TENANTRY_COMPOSE_PROJECT: {
    description: 'name of the Compose project whose containers are started again',
    setBy: 'launcher',
  },
  TENANTRY_DOCKER_PROXY_PUBLISHED: {
    description: 'ports that containers may publish, separated by commas',
    fallback: 'none',
    setBy: 'launcher',
  },
  TENANTRY_LOG_LEVEL: logLevel,
  // The image, which it shares with the control plane, sets these.
  TENANTRY_HOST: { description: 'not used; the image sets it for the control plane', setBy: 'launcher' },
  TENANTRY_PORT: { description: 'not used; the image sets it for the control plane', setBy: 'launcher' },
  TENANTRY_INTERNAL_TOKEN_FILE: { description: 'not used; the image sets it for the control plane', setBy: 'launcher' },
} as const satisfies Settings

/** Settings of the watchdog, which runs from the same image. */
export const watchdogSettings = {
  TENANTRY_DOCKER_SOCKET: dockerProxySettings.TENANTRY_DOCKER_SOCKET,
  TENANTRY_COMPOSE_PROJECT: dockerProxySettings.TENANTRY_COMPOSE_PROJECT,
  TENANTRY_LOG_LEVEL: logLevel,
  TENANTRY_HOST: dockerProxySettings.TENANTRY_HOST,
  TENANTRY_PORT: dockerProxySettings.TENANTRY_PORT,
  TENANTRY_INTERNAL_TOKEN_FILE: dockerProxySettings.TENANTRY_INTERNAL_TOKEN_FILE,
} as const satisfies Settings

/**
 * Names that the project's tests and benchmarks read. A part ignores them, because it may inherit a test run's
 * environment.
 */
export const developmentNames: readonly string[] = [
  'TENANTRY_BENCH_TENANTS',
  'TENANTRY_DOCKER_HOST',
  'TENANTRY_SEED',
  'TENANTRY_SIMULATION_SEED',
  'TENANTRY_SOAK',
  'TENANTRY_TEST_CLOCK',
  'TENANTRY_WRITE_DOCS',
]
