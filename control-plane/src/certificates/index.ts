// The public interface of `certificates/`.
export { type Authority, type Issued, issuePeerCertificate, issueServerCertificate, newAuthority } from './authority.ts'
export { openAuthority } from './open-authority.ts'
export { addCertificateRoutes, type CertificateRoutesDeps } from './routes.ts'
export { issuingRoutes } from './routes-internal.ts'
export type { AuthorityStore } from './store.ts'
