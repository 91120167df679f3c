// The public interface of `watch/`.
export { requestTls } from './routes-tls-ask.ts'
export { internalRoutes } from './routes.ts'
export { createHostNames } from './store-host-names.ts'
export { createPublishedSource } from './store.ts'
export { createWatches, type PublishedSource } from './watches.ts'
