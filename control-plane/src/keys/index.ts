// The exports of `keys/` that other modules may import.
export { addAccess } from './access.ts'
export { createFirstKey } from './first-key.ts'
export { createRecoveryKey } from './recovery-key.ts'
export { keyHash, newApiKey, newSecret } from './key-text.ts'
export { addKeyRoutes, type KeyRoutesDeps } from './routes.ts'
export { createPlatformKeyStore, type PlatformKeyStore } from './store.ts'
