// Reads the audit log, and verifies its hash chain.

interface AuditEntry {
  seq: number
  at: Date
  /** The id of a platform key, or `system`. */
  actor: string
  action: string
  target: string
  detail: unknown
}

export interface AuditLog {
  /** Lists entries, newest first. `before` is the last `seq` of the page before. */
  list(limit: number, before: number | undefined): Promise<AuditEntry[]>
  /** Recomputes every hash. `brokenAt` is the first entry that does not match the one before it. */
  verify(): Promise<{ entries: number; brokenAt: number | undefined }>
}
