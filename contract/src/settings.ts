// Every setting of every part: its name in the environment, its meaning, and who sets it. The parts read no other names,
// `npm start` passes on what operators may set, and docs/operations.md shows the tables.

/** One setting: an environment variable that a part reads. */
export interface Setting {
  /** What the value is, in Markdown, for the table in docs/operations.md. */
  description: string
  /** What applies without the setting, in the same table; undefined: the part does not start without it, or needs no value. */
  fallback?: string
  /**
   * `operator`: people set it, and `npm start` passes it on. `launcher`: whatever starts the part sets it to fit the other parts,
   * as `npm start`, Compose and the control plane's stacks do.
   */
  setBy: 'operator' | 'launcher'
  /** The option of `npm start` that decides it there. */
  startOption?: string
  /** A path; `npm start` makes it absolute, because the parts run in another directory. */
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
  description: 'file with the token that the parts show each other',
  setBy: 'launcher',
  isPath: true,
}
const restarts: Setting = {
  description: 'counts the restarts that were asked for; changes a container so that it is replaced',
  fallback: 'none',
  setBy: 'launcher',
}
const controlUrl: Setting = {
  description: 'URL of the control plane, or of a gateway that relays to it',
  setBy: 'launcher',
}
const installation: Setting = {
  description: 'name of the installation, a UUID, as docker-proxy and the control plane share it',
  fallback: 'made at the first start',
  setBy: 'launcher',
}
const whereTrusted = 'IPv4 and IPv6 networks between commas'

/** Settings of the control plane. */
export const controlPlaneSettings = {
  TENANTRY_HOST: { description: 'address that it listens on', fallback: '`127.0.0.1`', setBy: 'launcher' },
  TENANTRY_PORT: { description: 'port that it listens on', fallback: '4400', setBy: 'launcher', startOption: '--port' },
  TENANTRY_CONTROL_DATABASE_URL: { description: 'URL of the control database, with a superuser', setBy: 'launcher' },
  TENANTRY_CONTROL_DATABASE_URL_FILE: { description: 'file with that URL, instead', setBy: 'launcher', isPath: true },
  TENANTRY_MASTER_KEY_FILE: {
    description: 'file with the master key: 32 bytes in base64',
    setBy: 'launcher',
    isPath: true,
  },
  TENANTRY_INTERNAL_TOKEN_FILE: internalToken,
  TENANTRY_REGIONS_FILE: { description: 'file of the regions', setBy: 'launcher', isPath: true },
  TENANTRY_PLATFORM_KEY_FILE: {
    description: 'file that the first platform key is written to',
    fallback: 'no key is made',
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
    description: 'directory of [backups](backups.md)',
    fallback: 'none are kept',
    setBy: 'operator',
    isPath: true,
  },
  TENANTRY_WEBHOOKS_MAY_REACH: {
    description: `private networks that [webhooks](webhooks.md) may be in; ${whereTrusted}`,
    fallback: 'none; with `npm start` `127.0.0.0/8`',
    setBy: 'operator',
  },
  TENANTRY_DELETE_GRACE_SECONDS: {
    description: 'time between `DELETE` and the destruction of data',
    fallback: '604800 (7 days)',
    setBy: 'operator',
  },
  TENANTRY_ORPHAN_GRACE_SECONDS: {
    description: 'time for which something on an engine has had no tenant before it is removed',
    fallback: '3600 (1 h)',
    setBy: 'operator',
  },
  TENANTRY_PRICES_FILE: {
    description: 'file of [prices](invoices.md#the-file)',
    fallback: 'no invoices are made',
    setBy: 'operator',
    isPath: true,
  },
  TENANTRY_MAX_UPLOAD_BYTES: {
    description: 'largest file, unless its bucket allows less',
    fallback: '100000000 (100 MB)',
    setBy: 'operator',
  },
  TENANTRY_RATE_LIMITS: {
    description: 'rates of plans at each gateway, as in `Free=50/200,Pro=none`',
    fallback: 'see [quotas.md](quotas.md#the-rate)',
    setBy: 'operator',
  },
  TENANTRY_FAILPOINTS: {
    description: 'tests: faults at named points of the reconciler',
    fallback: 'none',
    setBy: 'operator',
  },
} as const satisfies Settings

/** Settings of a gateway. */
export const gatewaySettings = {
  TENANTRY_HOST: { description: 'address of the public listeners', fallback: '`127.0.0.1`', setBy: 'launcher' },
  TENANTRY_PORT: { description: 'port of the public HTTP listener', setBy: 'launcher', startOption: '--port' },
  TENANTRY_INTERNAL_HOST: {
    description: 'address that the other parts call',
    fallback: '`127.0.0.1`',
    setBy: 'launcher',
  },
  TENANTRY_INTERNAL_PORT: { description: 'port that the other parts call', setBy: 'launcher' },
  TENANTRY_CONTROL_URL: controlUrl,
  TENANTRY_INTERNAL_TOKEN_FILE: internalToken,
  TENANTRY_DATA: {
    description: 'its directory: routes, counters, leases',
    setBy: 'launcher',
    startOption: '--data',
    isPath: true,
  },
  TENANTRY_DOMAIN: {
    description: 'tenants are served at `NAME.` and this',
    fallback: '`localhost`',
    setBy: 'launcher',
    startOption: '--domain',
  },
  TENANTRY_SOURCE: {
    description: 'name of this gateway in the usage that it reports; no two share one',
    fallback: '`gateway-local-0`',
    setBy: 'launcher',
  },
  TENANTRY_LOG_LEVEL: logLevel,
  TENANTRY_RESTARTS: restarts,
  TENANTRY_POSTGRES_PORT: {
    description: "port for tenants' [databases](gateway.md)",
    fallback: 'none',
    setBy: 'operator',
  },
  TENANTRY_POSTGRES_TLS_CERT_FILE: {
    description: 'certificate chain of that port, PEM',
    fallback: 'no TLS',
    setBy: 'operator',
    isPath: true,
  },
  TENANTRY_POSTGRES_TLS_KEY_FILE: { description: 'its key, PEM', fallback: 'no TLS', setBy: 'operator', isPath: true },
  TENANTRY_TENANT_RANGE: {
    description: "IPv4 network of tenants' containers, whose connections are limited by address",
    fallback: 'none',
    setBy: 'operator',
  },
  TENANTRY_REGION_RANGE: {
    description: 'part of that network which is not limited',
    fallback: 'none',
    setBy: 'operator',
  },
  TENANTRY_TRUSTED_PROXIES: {
    description: "IPv4 addresses and networks of proxies whose word about their clients' addresses is taken",
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
    description: 'its directory: blobs, manifests',
    setBy: 'launcher',
    startOption: '--data',
    isPath: true,
  },
  TENANTRY_LOG_LEVEL: logLevel,
  TENANTRY_RESTARTS: restarts,
  TENANTRY_MAX_CONNECTIONS: {
    description: 'connections to Postgres, over all tenants',
    fallback: '100',
    setBy: 'launcher',
  },
  TENANTRY_SIBLINGS: { description: 'other runtimes that serve the same tenants', fallback: '0', setBy: 'launcher' },
  TENANTRY_FAILPOINTS: { description: 'tests: kills at named points of storage', fallback: 'none', setBy: 'launcher' },
  TENANTRY_MAX_PATH_BYTES: {
    description: 'longest path of a new object, in bytes of UTF-8; at most 1024',
    fallback: '1024',
    setBy: 'operator',
  },
  TENANTRY_SIGNED_URL_SECONDS: {
    description: 'validity of a signed URL when its maker says nothing',
    fallback: '3600 (1 h)',
    setBy: 'operator',
  },
  TENANTRY_MAX_SIGNED_URL_SECONDS: {
    description: 'validity of a signed URL at most',
    fallback: '31536000 (365 days)',
    setBy: 'operator',
  },
  TENANTRY_REST_ROLLBACK: {
    description: '1: `Prefer: tx=rollback` is heard, for development',
    fallback: '0',
    setBy: 'operator',
  },
  TENANTRY_FUNCTIONS_MAY_REACH: {
    description:
      "private networks that tenants' functions may fetch from all the same, such as `10.1.0.0/16,fd12::/16`",
    fallback: 'none',
    setBy: 'operator',
  },
  TENANTRY_STORAGE_BACKEND: {
    description: '`local` or `s3`; see [where files lie](#where-files-lie)',
    fallback: '`local`',
    setBy: 'operator',
  },
  TENANTRY_STORAGE_FALLBACK: {
    description: 'the other one, while files are moved',
    fallback: 'none',
    setBy: 'operator',
  },
  TENANTRY_S3_ENDPOINT: { description: 'URL of the S3 server', fallback: "AWS' own of the region", setBy: 'operator' },
  TENANTRY_S3_REGION: { description: "the server's region", fallback: '`us-east-1`', setBy: 'operator' },
  TENANTRY_S3_BUCKET: { description: "a bucket that is there, for this installation's files alone", setBy: 'operator' },
  TENANTRY_S3_PREFIX: { description: 'before every key, with a slash at its end', fallback: 'none', setBy: 'operator' },
  TENANTRY_S3_PATH_STYLE: {
    description: "1: the bucket is part of the path, 0: of the host's name",
    fallback: '1 with an endpoint, else 0',
    setBy: 'operator',
  },
  TENANTRY_S3_ACCESS_KEY_ID: { description: 'name of the access key', setBy: 'operator' },
  TENANTRY_S3_SECRET_ACCESS_KEY_FILE: {
    description: "file with the secret key, that the runtime's user can read",
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
  TENANTRY_DOCKER_PROXY_IMAGES: { description: 'images that containers may run, between commas', setBy: 'launcher' },
  TENANTRY_DOCKER_PROXY_ATTACHED: {
    description: "containers that may be attached to tenants' networks, between commas",
    fallback: 'none',
    setBy: 'launcher',
  },
  TENANTRY_COMPOSE_PROJECT: {
    description: 'name of the Compose project whose containers are started again',
    setBy: 'launcher',
  },
  TENANTRY_DOCKER_PROXY_PUBLISHED: {
    description: 'ports that containers may publish, between commas',
    fallback: 'none',
    setBy: 'launcher',
  },
  TENANTRY_LOG_LEVEL: logLevel,
  // The image that it shares with the control plane sets these.
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

/** Names that the project's tests and benchmarks read. A part ignores them: it may have inherited a test run's environment. */
export const developmentNames: readonly string[] = [
  'TENANTRY_BENCH_TENANTS',
  'TENANTRY_DOCKER_HOST',
  'TENANTRY_SEED',
  'TENANTRY_SIMULATION_SEED',
  'TENANTRY_SOAK',
  'TENANTRY_TEST_CLOCK',
  'TENANTRY_WRITE_DOCS',
]
