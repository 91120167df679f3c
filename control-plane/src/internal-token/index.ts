// The public interface of `internal-token/`.
export { recordInternalToken } from './jobs-record.ts'
export { createInternalTokenRecord } from './store.ts'
