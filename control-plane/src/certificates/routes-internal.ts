// The route at which gateways request the certificates of their SQL ports.
import { CertificateCall, internalPaths, type CertificateResponse } from '@tenantry/contract'
import type { FastifyPluginAsync } from 'fastify'
import { issueCertificate, readPublicKey } from './authority.ts'
import { certificateHosts, type HostsOfRegion } from './hosts.ts'
import type { AuthorityStore } from './store.ts'

interface CertificatesDeps {
  authority: Pick<AuthorityStore, 'get'>
  regions: readonly HostsOfRegion[]
  now: () => Date
}

/**
 * Creates a plugin with the internal route that issues certificates. The file of regions determines the names in them,
 * never the gateway. Private keys stay with the gateways.
 */
export function issuingRoutes({ authority, regions, now }: CertificatesDeps): FastifyPluginAsync {
  return async (app) => {
    app.post<{ Body: CertificateCall }>(
      internalPaths.sqlCertificate,
      { config: { scopes: 'internal' }, schema: { hide: true, body: CertificateCall } },
      async ({ body }) => {
        const publicKey = readPublicKey(body.public_key)
        const hosts = certificateHosts(body.domain, regions)
        const certificate = issueCertificate(await authority.get(), publicKey, hosts, now())
        return { certificate } satisfies CertificateResponse
      },
    )
  }
}
