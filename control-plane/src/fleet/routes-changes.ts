// GET /v1/changes: server-sent events that name the tenants whose state has changed.
import type { ServerResponse } from 'node:http'
import { Type } from 'typebox'
import type { Api } from '../http/api.ts'
import { textPattern } from '../http/parameters.ts'
import type { ChangeFeed } from '../platform/change-feed.ts'
import type { Clock } from '../platform/clock.ts'
import { ControlError } from '../platform/errors.ts'

/** Maximum number of streams. */
const maxFollowers = 256
/** Changes of this time are sent together. */
const collectMilliseconds = 300
/** Maximum number of tenants in one event; with more, the client must read the list again. */
const maxTenants = 200
const heartbeatMilliseconds = 15_000
/** The time after which a stream ends. The client then connects again with a session or key that is still valid. */
const maxStreamMilliseconds = 300_000

/** The dependencies of the stream of changes. */
export interface ChangesRoutesDeps {
  changes: Pick<ChangeFeed, 'subscribe'>
  clock: Pick<Clock, 'every' | 'later'>
}

/** Adds the stream of changes. The number of streams is bounded, and each ends after five minutes. */
export function addChangesRoute(app: Api, deps: ChangesRoutesDeps): void {
  let followers = 0
  app.get(
    '/v1/changes',
    {
      config: { scopes: ['admin', 'read', 'billing'], extendsSession: false },
      schema: {
        summary: 'The tenants whose state has changed, as server-sent events',
        description:
          'An event `change` has `{"tenant_ids":[…]}`, or `{"tenant_ids":null}` if many or unknown ones have changed. ' +
          'The stream ends after five minutes.',
        tags: ['fleet'],
        querystring: Type.Object(
          { tenant_id: Type.Optional(Type.String({ pattern: textPattern })) },
          { additionalProperties: false },
        ),
        response: { 200: { content: { 'text/event-stream': { schema: Type.String() } } } },
      },
    },
    async (request, reply) => {
      if (request.method === 'HEAD') return reply.type('text/event-stream').send('')
      if (followers >= maxFollowers)
        throw new ControlError('TOO_MANY_FOLLOWERS', `At most ${maxFollowers} clients can follow changes at once.`)
      reply.hijack()
      // The client has left while its key was checked, and the event "close" is over.
      if (reply.raw.destroyed) return reply
      followers++
      reply.raw.once('close', () => followers--)
      stream(reply.raw, request.query.tenant_id, deps)
      return reply
    },
  )
}

/** Sends changes until the client disconnects or the maximum time is over. A client that reads nothing is disconnected. */
function stream(raw: ServerResponse, only: string | undefined, { changes, clock }: ChangesRoutesDeps): void {
  let pending: Set<string> | 'all' = new Set()
  let cancelFlush: (() => void) | undefined
  const flush = () => {
    cancelFlush = undefined
    const tenantIds = pending === 'all' ? null : [...pending]
    pending = new Set()
    // The client has read nothing of the earlier events that fill the socket.
    if (raw.writableNeedDrain) raw.destroy()
    else raw.write(`event: change\ndata: ${JSON.stringify({ tenant_ids: tenantIds })}\n\n`)
  }
  raw.writeHead(200, {
    'content-type': 'text/event-stream; charset=utf-8',
    'cache-control': 'no-store',
    'x-content-type-options': 'nosniff',
  })
  raw.write('retry: 1000\n\n')
  const stops = [
    changes.subscribe((change) => {
      if (change !== 'resync' && (change.kind === 'blocked' || (only !== undefined && change.subject !== only))) return
      if (change === 'resync') pending = 'all'
      else if (pending !== 'all' && pending.add(change.subject).size > maxTenants) pending = 'all'
      cancelFlush ??= clock.later(collectMilliseconds, flush)
    }),
    clock.every(heartbeatMilliseconds, () => void raw.write(':\n\n')),
    clock.later(maxStreamMilliseconds, () => raw.end()),
  ]
  raw.once('close', () => {
    for (const stop of stops) stop()
    cancelFlush?.()
  })
}
