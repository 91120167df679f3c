// Opens a tenant's stored secrets.
import type { Seal } from '../platform/seal.ts'
import { secretKinds, type SecretKind } from './tenant.ts'

interface SecretRow {
  kind: string
  sealed: Uint8Array<ArrayBuffer>
  expiresAt: Date | null
}

interface LiveSecrets {
  /** Plain text of the secrets, the newest first, in the order of the rows. */
  texts: Record<SecretKind, string[]>
  /** Times at which rotated secrets expire, in the same order; null for one that was not rotated. */
  expiries: Record<SecretKind, (string | null)[]>
  /** Time at which the next rotated secret expires. */
  nextExpiry: Date | undefined
}

/** Opens the secrets that are valid at a time. */
export function liveSecrets(tenantId: string, rows: readonly SecretRow[], seal: Seal, at: Date): LiveSecrets {
  const live = rows.filter(({ expiresAt }) => expiresAt === null || expiresAt > at)
  const opened = (kind: SecretKind) =>
    live.filter((row) => row.kind === kind).map(({ sealed }) => seal.open(sealed, `${tenantId}:${kind}`))
  const expiriesOf = (kind: SecretKind) =>
    live.filter((row) => row.kind === kind).map(({ expiresAt }) => expiresAt?.toISOString() ?? null)
  const times = live.flatMap(({ expiresAt }) => (expiresAt === null ? [] : [expiresAt.getTime()]))
  return {
    texts: Object.fromEntries(secretKinds.map((kind) => [kind, opened(kind)])) as Record<SecretKind, string[]>,
    expiries: Object.fromEntries(secretKinds.map((kind) => [kind, expiriesOf(kind)])) as LiveSecrets['expiries'],
    nextExpiry: times.length === 0 ? undefined : new Date(Math.min(...times)),
  }
}
