// A tenant's secrets as they are kept → as they are used.
import type { Seal } from '../platform/seal.ts'
import { secretKinds, type SecretKind } from './tenant.ts'

interface SecretRow {
  kind: string
  sealed: Uint8Array<ArrayBuffer>
  expiresAt: Date | null
}

interface LiveSecrets {
  /** Newest first, as the rows are. */
  texts: Record<SecretKind, string[]>
  /** When the next of the rotated ones expires. */
  nextExpiry: Date | undefined
}

/** Opens those that are honoured at that time. */
export function liveSecrets(tenantId: string, rows: readonly SecretRow[], seal: Seal, at: Date): LiveSecrets {
  const live = rows.filter(({ expiresAt }) => expiresAt === null || expiresAt > at)
  const opened = (kind: SecretKind) =>
    live.filter((row) => row.kind === kind).map(({ sealed }) => seal.open(sealed, `${tenantId}:${kind}`))
  const expiries = live.flatMap(({ expiresAt }) => (expiresAt === null ? [] : [expiresAt.getTime()]))
  return {
    texts: Object.fromEntries(secretKinds.map((kind) => [kind, opened(kind)])) as Record<SecretKind, string[]>,
    nextExpiry: expiries.length === 0 ? undefined : new Date(Math.min(...expiries)),
  }
}
