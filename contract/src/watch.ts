// The watch protocol: one long HTTP answer of NDJSON lines. First the whole set, then `synced`, then changes.
// A reader that loses the connection starts over; whatever the new set lacks at `synced` is gone.
import { Type, type Static, type TSchema } from 'typebox'
import { TenantId } from './ids.ts'

/** Seconds between `ping` lines; a reader that hears nothing for three of them reconnects. */
export const watchPingSeconds = 5

/** Makes the schema of one line of a watch, for entries of the given schema. */
export function WatchLine<Entry extends TSchema>(entry: Entry) {
  return Type.Union([
    Type.Object({ type: Type.Literal('put'), entry }),
    Type.Object({ type: Type.Literal('remove'), tenant_id: TenantId }),
    Type.Object({ type: Type.Literal('synced') }),
    Type.Object({ type: Type.Literal('ping') }),
  ])
}

/**
 * One line of a watch: an entry is new or changed, a tenant is gone, the whole set was sent, or nothing but a sign of
 * life.
 */
export type WatchLine<Entry> =
  | { type: 'put'; entry: Entry }
  | { type: 'remove'; tenant_id: Static<typeof TenantId> }
  | { type: 'synced' }
  | { type: 'ping' }
