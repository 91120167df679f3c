// The settings of a tenant runtime.
import { controlUrl, internalToken, logLevel, restarts, type Settings } from './setting.ts'

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
  TENANTRY_SIBLING_HOSTS: {
    description:
      'names and ports of all runtimes that serve the same tenants, such as `runtime-0:24401,runtime-1:24401`',
    fallback: 'none: realtime messages stay in one runtime',
    setBy: 'launcher',
  },
  TENANTRY_FAILOVER_SECONDS: {
    description:
      'maximum wait of a request for the next primary of a [cluster](clusters.md), and of a read for it or sufficient replicas; at most 60',
    fallback: '0: it fails at once',
    setBy: 'launcher',
  },
  TENANTRY_REGION: {
    description:
      'ID of the region whose tenants it serves. A [move to another region](moves.md#move-to-another-region) needs it in both',
    fallback: 'none: it receives the tenants of all regions',
    setBy: 'launcher',
  },
  TENANTRY_RUNTIMES: {
    description: 'number of runtimes that share the tenants; each tenant has one of them',
    fallback: '1',
    setBy: 'launcher',
    startOption: '--runtimes',
  },
  TENANTRY_RUNTIME_NUMBER: {
    description: 'number of this runtime among them, from 0',
    fallback: '0',
    setBy: 'launcher',
  },
  TENANTRY_EGRESS_PROXY: {
    description: 'URL of the [egress proxy](egress.md) through which it reaches other hosts',
    fallback: 'none: it reaches them directly',
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
  TENANTRY_BODY_MEMORY_MB: {
    description: 'memory for the request bodies of all tenants together, in MiB; [shares](../quotas.md#memory)',
    fallback: '512, at most a quarter of the memory',
    setBy: 'operator',
  },
  TENANTRY_RESULT_MEMORY_MB: {
    description: 'memory for the results of all tenants together, in MiB; [shares](../quotas.md#memory)',
    fallback: '512, at most a quarter of the memory',
    setBy: 'operator',
  },
  TENANTRY_REST_ROLLBACK: {
    description: '1: the runtime honours `Prefer: tx=rollback`, for development',
    fallback: '0',
    setBy: 'operator',
  },
  TENANTRY_REST_AGGREGATES: {
    description: '0: the runtime rejects aggregates in `select` (`PGRST123`)',
    fallback: '1',
    setBy: 'operator',
  },
  TENANTRY_REST_SERVER_TIMING: {
    description: '1: responses of the REST interface have the header `Server-Timing`',
    fallback: '0',
    setBy: 'operator',
  },
  TENANTRY_REALTIME_COMPRESSION: {
    description: '1: [realtime](../realtime.md#compression) messages may be compressed',
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
