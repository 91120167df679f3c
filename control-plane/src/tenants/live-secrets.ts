// Opens a tenant's stored secrets.
import type { Seal } from '../platform/seal.ts'
import { secretKinds, type SecretKind } from './tenant.ts'

interface SecretRow {
  kind: string
  sealed: Uint8Array<ArrayBuffer>
  createdAt: Date
  expiresAt: Date | null
}

interface LiveSecrets {
  /** Plain text of the secrets, the newest first, in the order of the rows. */
  texts: Record<SecretKind, string[]>
  /** Times at which rotated secrets expire, in the same order; null for one that was not rotated. */
  expiries: Record<SecretKind, (string | null)[]>
  /** Times at which the secrets were created, in the same order. */
  creations: Record<SecretKind, string[]>
  /** Time at which the next rotated secret expires. */
  nextExpiry: Date | undefined
}

/** Opens the secrets that are valid at a time. */
export function liveSecrets(tenantId: string, rows: readonly SecretRow[], seal: Seal, at: Date): LiveSecrets {
  const live = rows.filter(({ expiresAt }) => expiresAt === null || expiresAt > at)
  const byKind = <Value>(valueOf: (row: SecretRow, kind: SecretKind) => Value) =>
    Object.fromEntries(
      secretKinds.map((kind) => [kind, live.filter((row) => row.kind === kind).map((row) => valueOf(row, kind))]),
    ) as Record<SecretKind, Value[]>
  const times = live.flatMap(({ expiresAt }) => (expiresAt === null ? [] : [expiresAt.getTime()]))
  return {
    texts: byKind(({ sealed }, kind) => seal.open(sealed, `${tenantId}:${kind}`)),
    expiries: byKind(({ expiresAt }) => expiresAt?.toISOString() ?? null),
    creations: byKind(({ createdAt }) => createdAt.toISOString()),
    nextExpiry: times.length === 0 ? undefined : new Date(Math.min(...times)),
  }
}
