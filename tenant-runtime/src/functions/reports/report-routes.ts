// HTTP routes of reports about functions: logs, invocations and usage; for the service role only.
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { RuntimeError } from '../../errors.ts'
import type { Followers } from '../../events/followers.ts'
import { readLastEventId } from '../../events/read-subscription.ts'
import { logLevels } from '../executor/protocol.ts'
import { expectFunction } from '../function-store.ts'
import { readLog, readNewLines, type LogFilter } from '../logs/read-log.ts'
import { granularities, readUsage, type Granularity, type UsagePeriod } from './function-usage.ts'
import { listInvocations, statuses, triggers } from './list-invocations.ts'
import {
  readChoice,
  readChoices,
  readCursor,
  readLimit,
  readParameters,
  readTime,
  writeCursor,
  invalidParameter,
  type Parameters,
} from './parameters.ts'

interface Named {
  Params: { name: string }
}

const service = { config: { access: 'service' } } as const
const maxItems = 1_000
const defaultItems = 100
const maxPeriod: Record<Granularity, { milliseconds: number; name: string }> = {
  hour: { milliseconds: 31 * 86_400_000, name: '31 days' },
  day: { milliseconds: 366 * 86_400_000, name: '366 days' },
}

interface ReportDeps {
  followers: Followers
  /** Returns the current time in milliseconds since 1970. */
  now: () => number
}

export function addReportRoutes(app: FastifyInstance, { followers, now }: ReportDeps): void {
  app.get<Named>('/functions/v1/:name/logs', service, async (request, reply) => {
    const { tenant, rls, params, query } = request
    const parameters = readParameters(query, ['limit', 'cursor', 'since', 'until', 'invocation_id', 'level', 'follow'])
    const filter = readLogFilter(parameters)
    if (isFollowRequest(request, parameters)) {
      for (const name of ['limit', 'cursor', 'since', 'until'])
        if (parameters.has(name))
          throw invalidParameter(
            name,
            'is not allowed with "follow". To continue after an event, send its Last-Event-ID',
          )
      const last = readLastEventId(request.headers['last-event-id'])
      await expectFunction(tenant, rls, params.name)
      return followers.serve(request, reply, {
        last,
        read: (after, upTo) => readNewLines(tenant, rls, params.name, filter, after, upTo),
      })
    }
    const cursor = readCursor(parameters, /^\d{1,18}$/)
    const { lines, next } = await readLog(
      tenant,
      rls,
      params.name,
      filter,
      cursor === undefined ? undefined : BigInt(cursor),
      readLimit(parameters, maxItems, defaultItems),
    )
    return { logs: lines, next_cursor: next === undefined ? null : writeCursor(String(next)) }
  })

  app.get<Named>('/functions/v1/:name/invocations', service, async ({ tenant, rls, params, query }) => {
    const parameters = readParameters(query, ['status', 'trigger', 'since', 'until', 'limit', 'cursor'])
    const filter = {
      statuses: readChoices(parameters, 'status', statuses),
      triggers: readChoices(parameters, 'trigger', triggers),
      since: readTime(parameters, 'since'),
      until: readTime(parameters, 'until'),
    }
    const cursor = readCursor(parameters, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z [\w-]{1,100}$/)
    const position = cursor === undefined ? undefined : { timestamp: cursor.slice(0, 24), id: cursor.slice(25) }
    const { invocations, next } = await listInvocations(
      tenant,
      rls,
      params.name,
      filter,
      position,
      readLimit(parameters, maxItems, defaultItems),
    )
    return { invocations, next_cursor: next === undefined ? null : writeCursor(`${next.timestamp} ${next.id}`) }
  })

  app.get<Named>('/functions/v1/:name/usage', service, async ({ tenant, rls, params, query }) => {
    const period = readPeriod(readParameters(query, ['since', 'until', 'granularity']), now())
    const used = await readUsage(tenant, rls, params.name, period)
    return {
      since: new Date(period.since).toISOString(),
      until: new Date(period.until).toISOString(),
      granularity: period.granularity,
      ...used,
    }
  })
}

function readLogFilter(parameters: Parameters): LogFilter {
  return {
    invocationId: parameters.get('invocation_id'),
    levels: readChoices(parameters, 'level', logLevels),
    since: readTime(parameters, 'since'),
    until: readTime(parameters, 'until'),
  }
}

function isFollowRequest({ headers }: FastifyRequest, parameters: Parameters): boolean {
  const follow = readChoice(parameters, 'follow', ['true', 'false'])
  return follow === undefined ? /\btext\/event-stream\b/i.test(headers.accept ?? '') : follow === 'true'
}

/** Reads the period of a usage report; by default, the current month so far. */
function readPeriod(parameters: Parameters, now: number): UsagePeriod {
  const granularity = readChoice(parameters, 'granularity', granularities) ?? 'day'
  const until = readTime(parameters, 'until') ?? now
  const monthOf = new Date(until)
  const since = readTime(parameters, 'since') ?? Date.UTC(monthOf.getUTCFullYear(), monthOf.getUTCMonth())
  const { milliseconds, name } = maxPeriod[granularity]
  if (since > until) throw new RuntimeError('BAD_REQUEST', 'Parameter "since" must not be later than "until".')
  if (until - since > milliseconds)
    throw new RuntimeError(
      'BAD_REQUEST',
      `With granularity "${granularity}", the period from "since" to "until" must have at most ${name}.`,
    )
  return { since, until, granularity }
}
