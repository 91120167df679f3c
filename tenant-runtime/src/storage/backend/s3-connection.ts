// The connection to the bucket of tenants' files: through the egress proxy where there is one, and with storage errors.
import { isFullServer, S3Connection, type S3Location } from '@tenantry/contract/s3'
import type { Tunnel } from '../../egress/egress-proxy.ts'
import { createTunnelAgents } from '../../egress/tunnel-agents.ts'
import { RuntimeError } from '../../errors.ts'

export interface S3Settings extends S3Location {
  /** The connections to the server through the egress proxy, and their maximum number of connections; undefined to connect directly. */
  egress?: { tunnel: Tunnel; maxSockets: number } | undefined
}

/** Creates the connection. Its errors are STORAGE_FULL and STORAGE_UNAVAILABLE. */
export function connectStorage({ egress, ...location }: S3Settings): S3Connection {
  const agents = egress === undefined ? undefined : createTunnelAgents(egress.tunnel, egress.maxSockets)
  return new S3Connection(location, { errorOf: storageError, agents })
}

/** Maps any failure to a storage error. The operator finds the cause in the log; a client can only retry. */
export function storageError(cause: unknown): RuntimeError {
  if (cause instanceof RuntimeError) return cause
  if (isFullServer(cause)) return new RuntimeError('STORAGE_FULL', 'The storage has no room left.', { cause })
  return new RuntimeError('STORAGE_UNAVAILABLE', 'The storage can not be reached now.', { cause })
}
