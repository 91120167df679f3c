// The public interface of `x509/`.
export { authorityCertificate, serverCertificate } from './certificate.ts'
export { derivedCertificate, type DerivedCertificate } from './derived-certificate.ts'
