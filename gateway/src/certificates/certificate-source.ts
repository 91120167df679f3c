// Creates the source of the Postgres proxy's certificate.
import { join } from 'node:path'
import type { ControlPlane } from '../control-call.ts'
import { FileCertificate } from './file-certificate.ts'
import { IssuedCertificate } from './issued-certificate.ts'
import type { CertificateSource, Pem } from './server-certificate.ts'

/**
 * The certificate of the Postgres proxy: the operator's own one, which `read` reads again, or `issued` for one of the
 * installation's own authority.
 */
export type PostgresTls = 'issued' | (Pem & { read?: () => Promise<Pem> })

interface CertificateSourceOptions {
  control: ControlPlane
  domain: string
  /** The gateway's own directory. */
  data: string
  certificateInterval?: number
  now: () => number
  elapsed: () => number
  onReplaced: () => void
  onError: (error: Error) => void
}

/**
 * Creates the source. An issued certificate of an earlier run is loaded.
 * @returns undefined without TLS
 * @throws Error if the operator's certificate or its key is invalid
 */
export async function createCertificateSource(
  tls: PostgresTls | undefined,
  options: CertificateSourceOptions,
): Promise<CertificateSource | undefined> {
  const { data, certificateInterval: interval } = options
  if (tls === undefined) return undefined
  if (tls !== 'issued') return new FileCertificate({ ...options, interval, first: tls, read: tls.read })
  const issued = new IssuedCertificate({ ...options, interval, file: join(data, 'sql-certificate.pem') })
  await issued.load()
  return issued
}
