// Ids that are UUIDs.

const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/

/** Postgres refuses to compare a uuid column with anything else; such an id names nothing. */
export function isUuid(id: string): boolean {
  return uuid.test(id)
}
