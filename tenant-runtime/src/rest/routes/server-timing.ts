// Measures the phases of requests for the header `Server-Timing`, where the operator allows it.
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'

/** The phases of a request in their order, as PostgREST names them. */
const phases = ['jwt', 'parse', 'plan', 'transaction', 'response'] as const
type Phase = (typeof phases)[number]

interface Timing {
  reply: FastifyReply
  /** The end of each phase, in milliseconds since the request arrived. */
  ends: Map<Phase, number>
}

const timings = new WeakMap<FastifyRequest, Timing>()

/** Sends the duration of each phase in milliseconds with every response. */
export function addServerTiming(app: FastifyInstance): void {
  // The core's hook, which verifies the token, runs before this one.
  app.addHook('onRequest', (request, reply, done) => {
    timings.set(request, { reply, ends: new Map([['jwt', reply.elapsedTime]]) })
    done()
  })
  app.addHook('onSend', (request, reply, payload, done) => {
    endPhase(request, 'response')
    const ends = timings.get(request)?.ends
    let before = 0
    const durations = phases.map((phase) => {
      const end = ends?.get(phase) ?? before
      const duration = Math.max(end - before, 0)
      before = Math.max(end, before)
      return `${phase};dur=${duration.toFixed(1)}`
    })
    void reply.header('server-timing', durations.join(', '))
    done(null, payload)
  })
}

/** Notes that a phase of the request has ended. */
export function endPhase(request: FastifyRequest, phase: Phase): void {
  const timing = timings.get(request)
  if (timing !== undefined) timing.ends.set(phase, timing.reply.elapsedTime)
}
