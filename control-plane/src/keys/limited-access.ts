// What platform keys that are limited to a tenant or a region may call. The table has every route that platform keys may
// call: the start fails for a route that it lacks. Pure.

/** The access of limited keys to a route. `:id` is the ID in the path. */
export type LimitedAccess =
  /** The response contains nothing of a tenant or region. */
  | 'every key'
  /** The route concerns the whole installation. */
  | 'unlimited keys only'
  /** The route's list contains only what the key may see. */
  | 'list'
  /** The route compares the rights of the caller's key with those of the keys that it reads or writes. */
  | 'keys'
  /** The route's list contains only what a key of a region may see. Keys of a tenant may not call the route. */
  | 'list of the region'
  /** `:id` is a tenant that the key may use. */
  | 'tenant'
  /** `:id` is a tenant that the key may use. The body names no other region. */
  | 'tenant, in its region'
  /** `:id` is a tenant. A key of a tenant restores only into that tenant. */
  | 'tenant, with a target'
  /** `:id` is an operation of a tenant that the key may use. */
  | 'operation'
  /** `:id` is a backup of a tenant that the key may use. */
  | 'backup'
  /** `:id` is a backup. A key of a tenant restores only into that tenant. */
  | 'backup, with a target'
  /** `:id` is a rollout in the key's region. Keys of a tenant may not call the route. */
  | 'rollout'
  /** `:id` is the key's region. Keys of a tenant may not call the route. */
  | 'region'
  /** The body names the key's region. Keys of a tenant may not call the route. */
  | 'region in the body'

const ofTenant = (table: Record<string, readonly string[]>): Record<string, LimitedAccess> =>
  Object.fromEntries(
    Object.entries(table).flatMap(([path, methods]) =>
      methods.map((method) => [`${method} /v1/tenants/:id${path}`, 'tenant'] as const),
    ),
  )

/** The access of limited keys to each route, by method and path. HEAD is like GET. */
export const limitedAccess: Readonly<Record<string, LimitedAccess>> = {
  'GET /metrics': 'unlimited keys only',
  'GET /v1/plans': 'every key',
  'GET /v1/regions': 'list of the region',
  'GET /v1/hosts': 'list of the region',
  'GET /v1/hosts/:id': 'region',
  'POST /v1/regions/:id/superuser-password/rotate': 'region',
  'GET /v1/regions/:id/hosts': 'region',
  'POST /v1/regions/:id/hosts/:host/drain': 'region',
  'POST /v1/regions/:id/hosts/:host/lost': 'region',
  'POST /v1/regions/:id/hosts/:host/activate': 'region',
  'GET /v1/regions/:id/databases': 'region',
  'PATCH /v1/regions/:id/databases/:database': 'region',
  'GET /v1/regions/:id/rebalances': 'region',
  'POST /v1/regions/:id/rebalance': 'region',
  'GET /v1/regions/:id/rebalances/:rebalance': 'region',
  'POST /v1/regions/:id/rebalances/:rebalance/cancel': 'region',

  'POST /v1/tenants': 'region in the body',
  'GET /v1/tenants': 'list',
  'PATCH /v1/tenants/:id': 'tenant, in its region',
  ...ofTenant({
    '': ['GET', 'DELETE'],
    '/keys/rotate': ['POST'],
    '/database-password/rotate': ['POST'],
    '/service-passwords/rotate': ['POST'],
    '/jwks': ['GET', 'PUT'],
    '/restart': ['POST'],
    '/switchover': ['POST'],
    '/move': ['POST'],
    '/move/revert': ['POST'],
    '/pause': ['POST'],
    '/wake': ['POST'],
    '/undelete': ['POST'],
    '/health': ['GET'],
    '/drift': ['GET'],
    '/drift/repair': ['POST'],
    '/logs': ['GET'],
    '/sessions': ['GET'],
    '/sessions/:pid': ['DELETE'],
    '/usage': ['GET'],
    '/usage/:month': ['GET'],
    '/invoices': ['GET'],
    '/invoices.csv': ['GET'],
    '/invoices/upcoming': ['GET'],
    '/invoices/upcoming.:extension': ['GET'],
    '/invoices/:invoice': ['GET'],
    '/invoices/close': ['POST'],
    '/invoices/:invoice/void': ['POST'],
    '/adjustments': ['GET', 'POST'],
    '/adjustments/:adjustment': ['DELETE'],
    '/buyer': ['GET', 'PUT'],
    '/spending-limit': ['GET', 'PUT', 'DELETE'],
    '/backups': ['GET', 'POST'],
    '/recovery': ['GET'],
  }),
  'POST /v1/tenants/:id/restore': 'tenant, with a target',

  // The figures of all tenants together, and the changes of each.
  'GET /v1/fleet': 'unlimited keys only',
  'GET /v1/fleet/attention': 'unlimited keys only',
  'GET /v1/changes': 'unlimited keys only',
  'GET /v1/prices': 'every key',

  'GET /v1/usage': 'list',
  'GET /v1/usage/sources': 'unlimited keys only',
  'DELETE /v1/usage/sources/:source': 'unlimited keys only',

  'GET /v1/operations': 'list',
  'GET /v1/operations/:id': 'operation',
  'POST /v1/operations/:id/cancel': 'operation',

  'POST /v1/rollouts': 'region in the body',
  'GET /v1/rollouts': 'list of the region',
  'GET /v1/rollouts/:id': 'rollout',
  'POST /v1/rollouts/:id/cancel': 'rollout',

  // The list of all backups also contains those that the control database does not know.
  'GET /v1/backups': 'unlimited keys only',
  'GET /v1/backups/:id': 'backup',
  'DELETE /v1/backups/:id': 'backup',
  'POST /v1/backups/:id/adopt': 'unlimited keys only',
  'POST /v1/backups/:id/verify': 'backup',
  'POST /v1/backups/:id/restore': 'backup, with a target',

  'GET /v1/keys': 'keys',
  'POST /v1/keys': 'keys',
  'DELETE /v1/keys/:id': 'keys',
  'POST /v1/keys/:id/rotate': 'keys',

  'GET /v1/console-sessions/current': 'every key',
  'DELETE /v1/console-sessions/current': 'every key',
  'GET /v1/console-sessions': 'unlimited keys only',
  'DELETE /v1/console-sessions/:id': 'unlimited keys only',

  // Webhooks receive messages about all tenants, and gateways serve tenants of several keys.
  'POST /v1/webhooks': 'unlimited keys only',
  'GET /v1/webhooks': 'unlimited keys only',
  'GET /v1/webhooks/:id': 'unlimited keys only',
  'PATCH /v1/webhooks/:id': 'unlimited keys only',
  'DELETE /v1/webhooks/:id': 'unlimited keys only',
  'POST /v1/webhooks/:id/rotate': 'unlimited keys only',
  'GET /v1/webhooks/:id/deliveries': 'unlimited keys only',
  'POST /v1/webhooks/:id/replay': 'unlimited keys only',
  'POST /v1/webhooks/:id/deliveries/:delivery/replay': 'unlimited keys only',
  'GET /v1/blocked-addresses': 'unlimited keys only',
  'GET /v1/blocked-addresses/:address': 'unlimited keys only',
  'PUT /v1/blocked-addresses/:address': 'unlimited keys only',
  'DELETE /v1/blocked-addresses/:address': 'unlimited keys only',
  'GET /v1/audit': 'unlimited keys only',
  'GET /v1/audit/verify': 'unlimited keys only',
}

/** Returns what limited keys may do with a route; undefined if the table lacks it. */
export function limitedAccessOf(method: string, path: string): LimitedAccess | undefined {
  return limitedAccess[`${method === 'HEAD' ? 'GET' : method} ${path}`]
}
