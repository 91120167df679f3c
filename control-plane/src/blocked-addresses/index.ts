// The public interface of `blocked-addresses/`.
export { addBlockedAddressRoutes, type BlockedAddressRoutesDeps } from './routes.ts'
export { createBlockedAddressStore, type BlockedAddressStore } from './store.ts'
