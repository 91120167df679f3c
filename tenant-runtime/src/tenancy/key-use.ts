// The times at which this process has last accepted each API key. They are in memory only: a process knows what it has seen itself.
import type { Tenant } from './tenant.ts'

export class KeyUse {
  /** Milliseconds since the epoch from which on each use is known. */
  readonly since: number
  /** The last uses of a tenant's keys, by the SHA-256 of the key. */
  readonly #used = new Map<string, Map<string, number>>()

  constructor(since: number) {
    this.since = since
  }

  /** Records a use. @param sha256 the key's hash in lower-case hexadecimal */
  note(tenantId: string, sha256: string, at: number): void {
    const known = this.#used.get(tenantId)
    if (known === undefined) this.#used.set(tenantId, new Map([[sha256, at]]))
    else known.set(sha256, at)
  }

  /** Returns the time of a key's last use in milliseconds since the epoch; undefined without one. */
  lastUse(tenantId: string, sha256: string): number | undefined {
    return this.#used.get(tenantId)?.get(sha256)
  }

  /** Removes the uses of keys that a changed tenant no longer has; those of all keys without the tenant. */
  prune(tenantId: string, tenant: Tenant | undefined): void {
    const known = this.#used.get(tenantId)
    if (known === undefined) return
    const present = new Set(tenant?.manifest.keys.map(({ sha256 }) => sha256))
    for (const sha256 of known.keys()) if (!present.has(sha256)) known.delete(sha256)
    if (known.size === 0) this.#used.delete(tenantId)
  }
}
