// Checks of IDs that are UUIDs.

const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/

/**
 * Whether an ID is a UUID. Postgres rejects the comparison of a uuid column with another text, so such an ID does not
 * exist.
 */
export function isUuid(id: string): boolean {
  return uuid.test(id)
}
