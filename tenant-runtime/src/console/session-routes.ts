// Routes of /console/v1/session: sign in with the tenant's secret key, read the own session, sign out.
import { createHash } from 'node:crypto'
import { SignInAttempts } from '@tenantry/contract'
import type { FastifyInstance } from 'fastify'
import { Type } from 'typebox'
import type { TypeBoxTypeProvider } from '@fastify/type-provider-typebox'
import { RuntimeError } from '../errors.ts'
import { clientAddress } from '../http/client-address.ts'
import type { Authenticator } from '../tenancy/authenticate.ts'
import { presentSession, rejectOtherOrigin } from '../tenancy/developer-sessions.ts'

export interface SessionRoutesDeps {
  authenticator: Authenticator
  now: () => Date
  newId: () => string
}

const path = '/console/v1/session'

/** Adds the routes. A response to a wrong key is free for the tenant, and each further attempt of its client must wait longer. */
export function addSessionRoutes(plain: FastifyInstance, { authenticator, now, newId }: SessionRoutesDeps): void {
  const app = plain.withTypeProvider<TypeBoxTypeProvider>()
  const { sessions } = authenticator
  const attempts = new SignInAttempts(now)

  app.post(
    path,
    {
      config: { access: 'public' },
      schema: {
        body: Type.Object(
          { service_key: Type.String({ minLength: 1, maxLength: 200 }) },
          { additionalProperties: false },
        ),
      },
    },
    async (request, reply) => {
      rejectOtherOrigin(request)
      const { tenant } = request
      const client = `${tenant.id} ${clientAddress(request.headers)}`
      const seconds = attempts.waitSeconds(client)
      if (seconds > 0) {
        request.admitted = false
        throw new RuntimeError('TOO_MANY_ATTEMPTS', `Too many failed attempts to sign in. Try again in ${seconds} s.`, {
          retryAfter: seconds,
        })
      }
      const key = request.body.service_key.trim()
      if (!authenticator.isSecretKey(tenant, key)) {
        attempts.fail(client)
        request.admitted = false
        throw new RuntimeError(
          'INVALID_KEY',
          'This is not a secret key of the tenant. It begins with "tn_secret_", and ends when it is rotated.',
        )
      }
      attempts.succeed(client)
      const begun = sessions.begin(request, reply, createHash('sha256').update(key).digest('hex'), newId())
      return reply.status(201).header('cache-control', 'no-store').send(presentSession(begun, tenant))
    },
  )

  // A page that was loaded again has only the cookie. Pages of other origins cannot read the response.
  app.get(path, { config: { access: 'public' } }, async (request, reply) => {
    rejectOtherOrigin(request)
    if (request.developerSession === null) {
      request.admitted = false
      throw new RuntimeError('UNAUTHORIZED', 'There is no session. Sign in with the secret key.')
    }
    return reply.header('cache-control', 'no-store').send(presentSession(request.developerSession, request.tenant))
  })

  app.delete(path, { config: { access: 'service' } }, async (request, reply) => {
    if (request.developerSession !== null) sessions.end(request, reply, request.developerSession)
    return reply.status(204).send()
  })
}
