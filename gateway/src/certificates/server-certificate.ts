// The certificate with which the Postgres proxy serves TLS. It can be replaced while sessions continue.
import { X509Certificate } from 'node:crypto'
import { createSecureContext, type SecureContext } from 'node:tls'

/** A certificate chain and its private key in PEM. */
export interface Pem {
  cert: string
  key: string
}

/** The source of the certificate. */
export interface CertificateSource {
  readonly current: ServerCertificate
  /** Replaces the certificate when there is a new one, until the signal aborts. */
  run(signal: AbortSignal): Promise<void>
}

/** The certificate that new sessions use. Open sessions keep what they began with. */
export class ServerCertificate {
  #pem: Pem | undefined
  #context: SecureContext | undefined
  #expiresAt: number | undefined

  /** Undefined while there is no certificate. */
  get context(): SecureContext | undefined {
    return this.#context
  }

  /** The end of the validity in milliseconds since 1970; undefined while there is no certificate. */
  get expiresAt(): number | undefined {
    return this.#expiresAt
  }

  /**
   * Replaces the certificate, and keeps the present one after an error.
   * @returns whether the certificate or its key has changed
   * @throws Error if the certificate or its key is invalid, or if they do not belong together
   */
  replace(pem: Pem): boolean {
    if (pem.cert === this.#pem?.cert && pem.key === this.#pem.key) return false
    const context = createSecureContext(pem)
    this.#expiresAt = Date.parse(new X509Certificate(pem.cert).validTo)
    this.#context = context
    this.#pem = pem
    return true
  }
}
