// Every setting of control plane, gateway and docker-proxy; runtime-settings.ts has those of runtimes: the name in the
// environment, the meaning, and the origin. The parts read no other names, `npm start` passes on what operators may set, and
// docs/operate/configuration.md shows the tables.
import { controlUrl, internalToken, logLevel, restarts, type Setting, type Settings } from './setting.ts'
import { storageRelaySettings } from './storage-relay-settings.ts'

const installation: Setting = {
  description: 'name of the installation, a UUID, the same for docker-proxy and the control plane',
  fallback: 'generated at the first start',
  setBy: 'launcher',
}
const controlDatabaseDumps = '[dumps of the control database](back-up-and-restore.md#dumps-of-the-control-database)'
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
  TENANTRY_CONTROL_DATABASE_PASSWORD_FILE: {
    description:
      "file with the superuser's password, in place of the one in the URL; " +
      '[former passwords](secrets.md#the-passwords-of-the-superusers) may follow, one in a line',
    fallback: 'the password in the URL',
    setBy: 'launcher',
    isPath: true,
  },
  TENANTRY_MASTER_KEY_FILE: {
    description:
      'file with the master key, 32 bytes in base64; [former keys](secrets.md#the-master-key) may follow, one in a line',
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
    fallback: 'none; with `npm start` `backups/` in the data directory',
    setBy: 'operator',
    isPath: true,
  },
  TENANTRY_BACKUP_TARGETS_FILE: {
    description: '[file of further backup targets](../backups.md#targets)',
    fallback: 'none',
    setBy: 'operator',
    isPath: true,
  },
  TENANTRY_PROOF_DAYS: {
    description: "days within which each tenant's newest [backup](../backups.md#proof) is verified once; 0 for never",
    fallback: '7',
    setBy: 'operator',
  },
  TENANTRY_DUMP_MINUTES: {
    description: `minutes between two ${controlDatabaseDumps} into each backup target; 0 for none`,
    fallback: '60',
    setBy: 'operator',
  },
  TENANTRY_WEBHOOKS_MAY_REACH: {
    description: `private networks that [webhooks](../webhooks.md) may be sent to; ${networkList}`,
    fallback: 'none; with `npm start` `127.0.0.0/8`',
    setBy: 'operator',
  },
  TENANTRY_API_TRUSTED_PROXIES: {
    description:
      'proxies in front of the API, whose `X-Forwarded-For` states the address that a ' +
      `[platform key](../api.md#platform-keys) is used from; ${networkList}`,
    fallback: 'none',
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
  TENANTRY_MAX_RELATIONS: {
    description: 'maximum number of own relations of a [home](../quotas.md#relations), and of its other objects',
    fallback: '2000',
    setBy: 'operator',
  },
  TENANTRY_OPERATION_DAYS: {
    description: 'days after which finished [operations](../api.md) are deleted, except the latest one of each tenant',
    fallback: '365',
    setBy: 'operator',
  },
  TENANTRY_MOVE_HOLD_MILLISECONDS: {
    description:
      "milliseconds for which a [move](moves.md) may hold a tenant's requests before it releases them and tries again",
    fallback: '3000',
    setBy: 'operator',
  },
  TENANTRY_MOVE_REVERSE_SECONDS: {
    description:
      'seconds after a [move](moves.md) for which its old home stays, so that the move can be reverted; 0: the old home is removed at once',
    fallback: '3600',
    setBy: 'operator',
  },
  TENANTRY_MOVE_MEGABYTES_PER_SECOND: {
    description:
      'megabytes per second at which a [move](moves.md) copies a home; it compares twice as many. Fewer leave more time for requests',
    fallback: '60',
    setBy: 'operator',
  },
  TENANTRY_BACKUP_MEGABYTES_PER_SECOND: {
    description:
      'megabytes per second at which a [backup](../backups.md) reads a home. Fewer leave more time for requests',
    fallback: '100',
    setBy: 'operator',
  },
  TENANTRY_AUDIT_DAYS: {
    description: 'days after which entries of the [audit log](../api.md#audit-log) are removed, at least 30',
    fallback: '2557 (7 years)',
    setBy: 'operator',
  },
  TENANTRY_FUNCTION_LIMITS: {
    description:
      "maximum number of a tenant's functions, and of bytes of their modules, by plan, such as `Free=20/50000000,Pro=none`",
    fallback: 'see [quotas](../quotas.md#functions)',
    setBy: 'operator',
  },
  TENANTRY_SCHEMA_LIMITS: {
    description:
      "maximum number of a tenant's schemas, and of bytes of their texts, by plan, such as `Free=50/1000000,Pro=none`",
    fallback: 'see [quotas](../quotas.md#schemas)',
    setBy: 'operator',
  },
  TENANTRY_EVENT_LIMITS: {
    description:
      'days for which events are stored, and maximum bytes of the newest ones, by plan, such as `Free=2/10000000,Pro=none`',
    fallback: 'see [quotas](../quotas.md#events-and-records-of-invocations)',
    setBy: 'operator',
  },
  TENANTRY_INVOCATION_LIMITS: {
    description:
      'days for which records of invocations are stored, and maximum number of the newest ones, by plan, such as `Free=7/10000`',
    fallback: 'see [quotas](../quotas.md#events-and-records-of-invocations)',
    setBy: 'operator',
  },
  TENANTRY_REALTIME_LIMITS: {
    description: 'messages on realtime channels per second, and maximum bytes of one, by plan, such as `Free=20/64000`',
    fallback: 'see [quotas](../quotas.md#realtime-messages)',
    setBy: 'operator',
  },
  TENANTRY_RATE_LIMITS: {
    description: 'rates of plans at each gateway, such as `Free=50/200,Pro=none`',
    fallback: 'see [quotas](../quotas.md#the-rate)',
    setBy: 'operator',
  },
  TENANTRY_SESSION_LIMITS: {
    description:
      'limits of SQL sessions by plan and of all tenants of a server, such as `Free.locks=4000,server.memory_bytes=4000000000`',
    fallback: 'see [quotas](../quotas.md#sql-sessions)',
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
  TENANTRY_SHARED_PORT: {
    description: '1: other gateways of the installation listen on that port, too (Linux)',
    fallback: '0',
    setBy: 'launcher',
    startOption: '--gateways',
  },
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
    fallback: 'none; `npm start` selects one at its first start',
    setBy: 'operator',
  },
  TENANTRY_POSTGRES_TLS_CERT_FILE: {
    description: 'PEM file with the certificate chain of that port; read again when it changes',
    fallback: "a certificate of the [installation's own authority](../sql.md#which-certificate-a-gateway-has)",
    setBy: 'operator',
    isPath: true,
  },
  TENANTRY_POSTGRES_TLS_KEY_FILE: {
    description: 'PEM file with its key',
    fallback: 'the same',
    setBy: 'operator',
    isPath: true,
  },
  TENANTRY_POSTGRES_REQUIRE_TLS: {
    description: '1: that port rejects logins [without TLS](../sql.md#require-tls); 0: it accepts them',
    fallback: '1 with a certificate from files, otherwise 0',
    setBy: 'operator',
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
  TENANTRY_CONNECTIONS_PER_ADDRESS: {
    description: 'maximum open connections of one [client address](../gateway.md#how-many-connections)',
    fallback: '1250',
    setBy: 'operator',
  },
  TENANTRY_REQUESTS_PER_ADDRESS: {
    description: 'maximum requests in progress of one [client address](../gateway.md#how-many-requests)',
    fallback: '1000',
    setBy: 'operator',
  },
  TENANTRY_REQUESTS_PER_TENANT: {
    description: 'maximum requests in progress of one tenant, WebSockets and event streams included',
    fallback: '1000',
    setBy: 'operator',
  },
  TENANTRY_REJECTIONS_PER_ADDRESS: {
    description:
      'rejected requests of one [client address](../gateway.md#rejected-requests): per second, and in a burst',
    fallback: '50/500',
    setBy: 'operator',
  },
  TENANTRY_EGRESS_PORT: {
    description: 'port of the [egress proxy](egress.md), at the address of the internal listener',
    fallback: 'none',
    setBy: 'launcher',
  },
  TENANTRY_EGRESS_STORAGE: {
    description: "the S3 server's `host:port` that the shared runtimes reach through the [egress proxy](egress.md)",
    fallback: 'none',
    setBy: 'operator',
  },
  TENANTRY_EGRESS_MAY_REACH: {
    description: `private networks that functions may reach through the [egress proxy](egress.md); ${networkList}`,
    fallback: 'none',
    setBy: 'operator',
  },
  TENANTRY_EGRESS_FORBIDDEN: {
    description: `networks and addresses that functions never reach, such as the host's own; ${networkList}`,
    fallback: 'none',
    setBy: 'operator',
  },
  ...storageRelaySettings,
  TENANTRY_ACCESS_LOG: {
    description: 'share of the requests that are [logged](monitoring.md#access-log), such as `0.01` or `1`',
    fallback: '0',
    setBy: 'operator',
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
  TENANTRY_DOCKER_PROXY_PORT: {
    description: 'port for control planes on other hosts, on a platform on several; networks are then overlay networks',
    fallback: 'none',
    setBy: 'launcher',
  },
  TENANTRY_DOCKER_PROXY_TLS: {
    description: 'directory of `ca.pem`, `cert.pem` and `key.pem` for that port',
    setBy: 'launcher',
    isPath: true,
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
