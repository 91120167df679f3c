// How a gateway gets the certificate of its SQL port from the installation's own authority.
import { Type, type Static } from 'typebox'

/** A gateway's request for a certificate. Its private key stays with the gateway. */
export const CertificateCall = Type.Object(
  {
    /** The public key on the curve P-256 as SPKI in DER, in base64. */
    public_key: Type.String({ pattern: '^[A-Za-z0-9+/]+={0,2}$', maxLength: 1_000 }),
    /** The domain that the gateway serves. The names in the certificate are those of the regions with this domain. */
    domain: Type.String({ minLength: 1, maxLength: 253 }),
  },
  { additionalProperties: false },
)
export type CertificateCall = Static<typeof CertificateCall>

/** The control plane's response to a `CertificateCall`. */
export const CertificateResponse = Type.Object({
  /** PEM: the gateway's certificate, then the authority's. */
  certificate: Type.String({ minLength: 1 }),
})
export type CertificateResponse = Static<typeof CertificateResponse>
