// The public interface of `certificates/`.
export { issuePeerCertificate } from './authority.ts'
export { openAuthority } from './open-authority.ts'
export { addCertificateRoutes, type CertificateRoutesDeps } from './routes.ts'
export { issuingRoutes } from './routes-internal.ts'
export type { AuthorityStore } from './store.ts'
