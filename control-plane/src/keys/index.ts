// The exports of `keys/` that other modules may import.
export { addAccess } from './access.ts'
export { keyHash, newApiKey, newPlatformKey, newSecret } from './key-text.ts'
export type { PlatformKeyStore } from './platform-key-store.ts'
export { addKeyRoutes, type KeyRoutesDeps } from './routes.ts'
export { createPlatformKeyStore } from './store.ts'
