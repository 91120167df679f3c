// The sealed secrets of a tenant as one text, which Postgres makes and the client reads much faster than rows or nested JSON.
import { Prisma } from '../../../prisma/client/client.ts'

/** A secret as it is stored. */
interface SealedSecret {
  kind: string
  sealed: Buffer<ArrayBuffer>
  createdAt: Date
  expiresAt: Date | null
}

/** The aggregate of the rows `s` of `tenant_secrets`. */
export const secretsText = Prisma.sql`string_agg(
  s.kind || ' ' || encode(s.sealed, 'base64') || ' ' || (extract(epoch from s.created_at) * 1000)::bigint || ' '
    || coalesce((extract(epoch from s.expires_at) * 1000)::bigint::text, ''), ',')`

/** Returns the secrets of such a text, the newest first; none for null. */
export function readSecretsText(text: string | null): SealedSecret[] {
  const read = (part: string): SealedSecret => {
    const [kind = '', sealed = '', createdAt = '', expiresAt = ''] = part.split(' ')
    return {
      kind,
      sealed: Buffer.from(sealed, 'base64'),
      createdAt: new Date(Number(createdAt)),
      expiresAt: expiresAt === '' ? null : new Date(Number(expiresAt)),
    }
  }
  const all = text === null ? [] : text.split(',').map(read)
  return all.sort((one, other) => other.createdAt.getTime() - one.createdAt.getTime())
}
