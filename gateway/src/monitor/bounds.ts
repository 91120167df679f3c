// The bounds of this gateway as numbers: how much of each is used, what the maximum is, and how often it was reached.
import { maxBlockedAddresses } from '@tenantry/contract'
import type { BlockedAddresses } from '../clients/blocked-addresses.ts'
import type { ClientAddresses } from '../clients/client-addresses.ts'
import type { ConnectionTable } from '../clients/connection-table.ts'
import type { RequestShares } from '../clients/request-shares.ts'
import type { EgressShares } from '../egress/egress-shares.ts'
import type { BodyBudget } from '../forward/body-budget.ts'
import type { RuntimeSockets } from '../forward/runtime-sockets.ts'
import type { Limits } from '../limits.ts'
import type { Meter } from '../meter/meter.ts'
import type { WaitingRoom } from '../waiting/waiting-room.ts'

/** One bound at this moment. */
export interface Bound {
  /** The amount in use: for a share, that of the tenant or address that uses most. Undefined where nothing is in use. */
  used?: number
  limit: number
  /** The number of times that something was rejected, closed or delayed because of the bound. */
  rejections: number
}

interface BoundSources {
  limits: Limits
  table: ConnectionTable
  addresses: ClientAddresses
  blocked: BlockedAddresses
  shares: RequestShares
  bodies: BodyBudget
  sockets: RuntimeSockets
  waiting: WaitingRoom
  meter: Meter
  egress: EgressShares | undefined
}

/** Reads all bounds by name. */
export function readBounds(sources: BoundSources): Record<string, Bound> {
  const { limits, table, addresses, blocked, shares, bodies, sockets, waiting, meter, egress } = sources
  let connections = 0
  let requests = 0
  for (const address of addresses.all()) {
    if (address.isProxy) continue
    connections = Math.max(connections, address.connections.size)
    requests = Math.max(requests, address.requests)
  }
  return {
    connections: { used: table.size, limit: limits.connections, rejections: table.rejectedFull },
    connections_per_address: {
      used: connections,
      limit: limits.connectionsPerAddress,
      rejections: table.rejectedOfAddresses,
    },
    heads: { used: table.heads, limit: limits.heads, rejections: table.closedHeads },
    requests: { used: shares.inProgress, limit: limits.requests, rejections: 0 },
    requests_per_tenant: {
      used: meter.maxInProgress,
      limit: limits.requestsPerTenant,
      rejections: shares.rejectedOfTenants,
    },
    requests_per_address: { used: requests, limit: limits.requestsPerAddress, rejections: shares.rejectedOfAddresses },
    requests_per_connection: { limit: limits.requestsPerConnection, rejections: shares.closedConnections },
    rejections_per_address: { limit: limits.rejectionsBurst, rejections: shares.rejectedAfterRejections },
    blocked_addresses: { used: blocked.size, limit: maxBlockedAddresses, rejections: blocked.rejected },
    body_bytes: { used: bodies.held, limit: limits.bodyBytes, rejections: bodies.waits },
    body_rate: { limit: limits.bodyBytesPerSecond, rejections: bodies.slow },
    runtime_connections: { used: sockets.open, limit: limits.runtimeSockets, rejections: sockets.rejected },
    waiting_requests: { used: waiting.size, limit: limits.waiting, rejections: waiting.rejected },
    ...(egress === undefined ? {} : readEgressBounds(egress, limits)),
  }
}

function readEgressBounds(egress: EgressShares, limits: Limits): Record<string, Bound> {
  const { egressConnections, egressStorageConnections, egressConnectionsPerTenant, egressBytesPerSecond } = limits
  return {
    egress_connections: {
      used: egress.open,
      limit: egressConnections + egressStorageConnections,
      rejections: egress.rejectedOfAll,
    },
    egress_connections_per_tenant: {
      used: egress.maxOfTenants,
      limit: egressConnectionsPerTenant,
      rejections: egress.rejectedOfTenants,
    },
    egress_rate: { limit: egressBytesPerSecond, rejections: egress.waits },
  }
}
