// The context for intents, counters and the list of blobs to remove. They belong to the runtime: callers change them only
// through the runtime's statements.
import type { RlsContext } from '../tenancy/rls-context.ts'

export const recordsContext: RlsContext = { role: 'service', reason: 'storage records' }
