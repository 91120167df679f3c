// Who writes, and under which key.

/** Who writes, for the audit log: a platform key's id, or the name of a part of the installation. */
export interface Actor {
  keyId: string
}

/** An `Idempotency-Key` with what it stands for. */
export interface Idempotency {
  key: string
  /** SHA-256 of method, path and body. */
  fingerprint: string
}

export interface WriteContext {
  actor: Actor
  idempotency: Idempotency | undefined
}
