// Checks of IDs that are UUIDs.

/** A UUID in the form in which Postgres writes it. */
export const uuidPattern = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/

/**
 * Whether an ID is a UUID. Postgres rejects the comparison of a uuid column with another text, so such an ID does not
 * exist.
 */
export function isUuid(id: string): boolean {
  return uuidPattern.test(id)
}
