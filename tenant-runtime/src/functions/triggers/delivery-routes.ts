// HTTP routes of a function's waiting and dead deliveries (list, replay, delete) and of its planned times; for the service role.
import { Type } from 'typebox'
import type { FastifyInstance } from 'fastify'
import { RuntimeError } from '../../errors.ts'
import { functionId } from '../function-store.ts'
import { deleteDelivery, listDeliveries, noSuchDelivery, replayDeliveries } from './delivery-store.ts'
import { listPlannedTimes } from './schedule-runs.ts'

interface Named {
  Params: { name: string }
}

interface Numbered {
  Params: { name: string; seq: string }
}

interface Paged extends Named {
  Querystring: { status?: 'waiting' | 'dead'; limit?: string; cursor?: string }
}

const service = { config: { access: 'service' } } as const
const closed = { additionalProperties: false } as const
const page = { limit: Type.Optional(Type.String()), cursor: Type.Optional(Type.String()) }
const defaultLimit = 100
const maxLimit = 1_000

export async function addDeliveryRoutes(app: FastifyInstance): Promise<void> {
  app.get<Paged>(
    '/functions/v1/:name/deliveries',
    {
      ...service,
      schema: { querystring: Type.Object({ status: Type.Optional(Type.Enum(['waiting', 'dead'])), ...page }, closed) },
    },
    async ({ tenant, rls, params, query: { status, limit, cursor } }) => {
      const id = await functionId(tenant, rls, params.name)
      const { deliveries, next } = await listDeliveries(tenant, rls, id, {
        status,
        limit: readLimit(limit),
        after: cursor === undefined ? 0 : readSeq(cursor, 'cursor'),
      })
      return { deliveries, next_cursor: next }
    },
  )

  app.post<Named>('/functions/v1/:name/deliveries/replay', service, async ({ tenant, rls, params }) => {
    return { replayed: await replayDeliveries(tenant, rls, await functionId(tenant, rls, params.name), 'dead') }
  })

  app.post<Numbered>('/functions/v1/:name/deliveries/:seq/replay', service, async ({ tenant, rls, params }) => {
    const replayed = await replayDeliveries(
      tenant,
      rls,
      await functionId(tenant, rls, params.name),
      readSeq(params.seq, 'seq'),
    )
    if (replayed === 0) throw noSuchDelivery()
    return { replayed }
  })

  app.delete<Numbered>('/functions/v1/:name/deliveries/:seq', service, async ({ tenant, rls, params }, reply) => {
    await deleteDelivery(tenant, rls, await functionId(tenant, rls, params.name), readSeq(params.seq, 'seq'))
    return reply.status(204).send()
  })

  app.get<Paged>(
    '/functions/v1/:name/schedule',
    { ...service, schema: { querystring: Type.Object(page, closed) } },
    async ({ tenant, rls, params, query: { limit, cursor } }) => {
      const max = readLimit(limit)
      const times = await listPlannedTimes(tenant, rls, await functionId(tenant, rls, params.name), {
        limit: max,
        before: cursor === undefined ? null : readTime(cursor),
      })
      return { planned: times, next_cursor: times.length === max ? (times.at(-1)?.['planned_at'] ?? null) : null }
    },
  )
}

function readLimit(text: string | undefined): number {
  if (text === undefined) return defaultLimit
  const limit = /^\d{1,6}$/.test(text) ? Number(text) : 0
  if (limit < 1 || limit > maxLimit)
    throw new RuntimeError('BAD_REQUEST', `Parameter "limit" must be an integer from 1 to ${maxLimit}.`)
  return limit
}

function readSeq(text: string, name: string): number {
  if (!/^\d{1,15}$/.test(text))
    throw new RuntimeError('BAD_REQUEST', `Parameter "${name}" must be the number of a delivery.`)
  return Number(text)
}

function readTime(text: string): string {
  const time = /^\d{4}-\d\d-\d\dT/.test(text) ? Date.parse(text) : NaN
  if (Number.isNaN(time))
    throw new RuntimeError('BAD_REQUEST', 'Parameter "cursor" must be the "next_cursor" of a previous page.')
  return new Date(time).toISOString()
}
