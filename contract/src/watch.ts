// The watch protocol: one long HTTP response of NDJSON lines. The whole set comes first, then `synced`, then changes. A
// reader that loses the connection starts again, and removes entries that the new set lacks at `synced`.
import { Type, type TSchema } from 'typebox'
import { TenantId } from './ids.ts'

/** Seconds between `ping` lines. A reader that receives nothing for three times as long reconnects. */
export const watchPingSeconds = 5

/** The member of an entry, and of the line that removes it, which identifies the entry. */
export type WatchKey = 'tenant_id' | 'address'

/** Creates the schema of a watch's line for entries of a schema. */
export function WatchLine<Entry extends TSchema>(entry: Entry, key: WatchKey) {
  const id = key === 'tenant_id' ? TenantId : Type.String()
  return Type.Union([
    Type.Object({ type: Type.Literal('put'), entry }),
    Type.Object({ type: Type.Literal('remove'), [key]: id }),
    Type.Object({ type: Type.Literal('synced') }),
    Type.Object({ type: Type.Literal('ping') }),
  ])
}

/** One line of a watch: a new or changed entry, the removal of an entry, the end of the whole set, or a heartbeat. */
export type WatchLine<Entry, Key extends WatchKey = 'tenant_id'> =
  { type: 'put'; entry: Entry } | ({ type: 'remove' } & Record<Key, string>) | { type: 'synced' } | { type: 'ping' }
