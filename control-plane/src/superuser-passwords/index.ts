// The public interface of `superuser-passwords/`.
export { replaceSuperuserPasswords } from './jobs-replace.ts'
export { addSuperuserPasswordRoutes, type SuperuserPasswordRoutesDeps } from './routes.ts'
export { createPasswordRequests, keepSuperuserPasswords } from './store-regions.ts'
export { createPasswordServers } from './store.ts'
