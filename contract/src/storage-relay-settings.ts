// The settings of the gateways' storage relay.
import type { Settings } from './setting.ts'

/** The settings of the storage relay, by the names of their variables. */
export const storageRelaySettings = {
  TENANTRY_STORAGE_RELAY_PORT: {
    description:
      "port of the storage relay, through which tenants' own runtimes reach the files in S3, at the address of the internal listener",
    fallback: 'none',
    setBy: 'launcher',
  },
  TENANTRY_S3_ENDPOINT: {
    description: "the storage relay's S3 server, as for the runtimes",
    fallback: 'none',
    setBy: 'launcher',
  },
  TENANTRY_S3_REGION: { description: "the server's region", fallback: '`us-east-1`', setBy: 'launcher' },
  TENANTRY_S3_BUCKET: { description: 'the bucket', fallback: 'none', setBy: 'launcher' },
  TENANTRY_S3_PREFIX: { description: 'prefix of every key', fallback: 'none', setBy: 'launcher' },
  TENANTRY_S3_PATH_STYLE: { description: '1: the bucket is part of the path', fallback: '1', setBy: 'launcher' },
  TENANTRY_S3_ACCESS_KEY_ID: { description: 'ID of the access key', fallback: 'none', setBy: 'launcher' },
  TENANTRY_S3_SECRET_ACCESS_KEY_FILE: {
    description: 'file with the secret key',
    fallback: 'none',
    setBy: 'launcher',
    isPath: true,
  },
} as const satisfies Settings
