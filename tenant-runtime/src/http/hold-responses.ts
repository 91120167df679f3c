// Holds the memory of each response until its client has received it, or has left.
import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { ResultOwner, Results } from '../bounds/index.ts'
import type { Tenant } from '../tenancy/tenant.ts'

/** The maximum time in which a client must receive a response that is in memory. Streams have a limit of their own. */
const maxMilliseconds = 600_000

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Whether the handler makes a large response by other means than a query, whose rows are counted as they arrive. */
    makesResult?: boolean
  }
}

/** Adds the hooks, after those that find the caller. Streams are not held: they have one part in memory at a time. */
export function holdResponses(app: FastifyInstance, results: Results): void {
  app.addHook('onRequest', (request, _reply, done) => {
    if (request.routeOptions.config.makesResult !== true) {
      done()
      return
    }
    try {
      results.checkRoom(ownerOf(request))
      done()
    } catch (error) {
      // What never reached the tenant's data is free for the tenant.
      request.admitted = false
      done(error instanceof Error ? error : new Error('There is no room.', { cause: error }))
    }
  })
  app.addHook('onSend', (request, reply, payload, done) => {
    const bytes =
      typeof payload === 'string' ? Buffer.byteLength(payload) : Buffer.isBuffer(payload) ? payload.length : 0
    // A request that was rejected before the tenant was found has none.
    if (bytes > 0 && (request.tenant as Tenant | null) !== null && !reply.raw.destroyed) {
      const release = results.holdResponse(ownerOf(request), bytes)
      if (release !== undefined) {
        const timer = setTimeout(() => reply.raw.destroy(), maxMilliseconds)
        timer.unref()
        reply.raw.once('close', () => {
          clearTimeout(timer)
          release()
        })
      }
    }
    done()
  })
}

function ownerOf(request: FastifyRequest): ResultOwner {
  const role = (request.rls as FastifyRequest['rls'] | null)?.role
  return { tenantId: request.tenant.id, isAnonymous: role === undefined || role === 'anon' }
}
