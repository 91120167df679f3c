// The settings of Postgres servers: in a region's stack, in those of tenants, and under `npm start`. Pure.

/** The settings of a server whose homes can move to another one. */
export const movableSettings: Readonly<Record<string, string>> = {
  // A move reads the changes of a home. A move that has ended without its end being noticed retains this much of the log.
  wal_level: 'logical',
  max_slot_wal_keep_size: '2GB',
}

/** The settings of a server that homes share, as far as they do not depend on its size. */
export const sharedServerSettings: Readonly<Record<string, string>> = {
  // The table has room for 242,000 locked objects in 52 MB: what 120 homes hold that lock 2,000 tables each.
  max_locks_per_transaction: '1024',
  // A query ends soon after its client has left.
  client_connection_check_interval: '1s',
  ...movableSettings,
  // Otherwise all commits wait whenever a new file of the log is filled with zeros.
  wal_init_zero: 'off',
  max_slot_wal_keep_size: '8GB',
}
