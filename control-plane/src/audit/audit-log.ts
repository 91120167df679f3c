// The audit log as it is read: entries, and whether their chain of hashes is whole.

interface AuditEntry {
  seq: number
  at: Date
  /** Platform key id, or `system`. */
  actor: string
  action: string
  target: string
  detail: unknown
}

export interface AuditLog {
  /** Newest first; `before` is the last `seq` of the page before. */
  list(limit: number, before: number | undefined): Promise<AuditEntry[]>
  /** Recomputes every hash. `brokenAt` is the first entry that does not fit the one before it. */
  verify(): Promise<{ entries: number; brokenAt: number | undefined }>
}
