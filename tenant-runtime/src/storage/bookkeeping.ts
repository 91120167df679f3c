// Intents, counters and the list of what is to be removed are the runtime's own: no caller may touch them by name, each does
// through the runtime's statements.
import type { RlsContext } from '../tenancy/rls-context.ts'

export const bookkeeping: RlsContext = { role: 'service', reason: 'storage bookkeeping' }
