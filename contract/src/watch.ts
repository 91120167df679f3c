// The watch protocol: one long HTTP response of NDJSON lines. The whole set comes first, then `synced`, then changes. A
// reader that loses the connection starts again, and removes entries that the new set lacks at `synced`.
import { Type, type Static, type TSchema } from 'typebox'
import { TenantId } from './ids.ts'

/** Seconds between `ping` lines. A reader that receives nothing for three times as long reconnects. */
export const watchPingSeconds = 5

/** Creates the schema of a watch's line for entries of a schema. */
export function WatchLine<Entry extends TSchema>(entry: Entry) {
  return Type.Union([
    Type.Object({ type: Type.Literal('put'), entry }),
    Type.Object({ type: Type.Literal('remove'), tenant_id: TenantId }),
    Type.Object({ type: Type.Literal('synced') }),
    Type.Object({ type: Type.Literal('ping') }),
  ])
}

/** One line of a watch: a new or changed entry, the removal of a tenant, the end of the whole set, or a heartbeat. */
export type WatchLine<Entry> =
  | { type: 'put'; entry: Entry }
  | { type: 'remove'; tenant_id: Static<typeof TenantId> }
  | { type: 'synced' }
  | { type: 'ping' }
