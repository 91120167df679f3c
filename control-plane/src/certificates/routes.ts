// The route of the certificate authority, whose certificate SQL clients need to verify a gateway.
import { Type } from 'typebox'
import type { Api } from '../http/api.ts'
import { NoQuery } from '../http/parameters.ts'
import type { AuthorityStore } from './store.ts'

/** The dependencies of the route of the certificate authority. */
export interface CertificateRoutesDeps {
  authority: Pick<AuthorityStore, 'certificate'>
}

/** Adds the route. It needs no key, because gateways send the same certificate to each client. */
export function addCertificateRoutes(app: Api, { authority }: CertificateRoutesDeps): void {
  app.get(
    '/v1/certificate-authority.pem',
    {
      config: { scopes: 'public' },
      schema: {
        summary: 'The certificate with which SQL clients verify a gateway',
        description:
          'PEM, for `sslrootcert` of psql, or `ssl.ca` of node-postgres. It changes only if the operator replaces the authority.',
        tags: ['certificate authority'],
        security: [],
        querystring: NoQuery,
        response: { 200: { content: { 'application/x-pem-file': { schema: Type.String() } } } },
      },
    },
    async (_request, reply) => reply.type('application/x-pem-file').send(await authority.certificate()),
  )
}
