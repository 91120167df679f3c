// The generated REST interface (specification, section 4.3): routes that read the request, plan it, and send on the
// JSON that Postgres made.
import type { FastifyPluginAsync, FastifyReply, FastifyRequest } from 'fastify'
import { databaseError } from '../database/database-error.ts'
import type { Statement } from '../database/statement.ts'
import type { Area } from '../tenancy/area.ts'
import { checkRecord } from './plan/check-record.ts'
import { planOne, planQuery, type Plan } from './plan/plan.ts'
import { checkSchema } from './registry/check-schema.ts'
import type { Collection, Column } from './registry/collection.ts'
import { Registry } from './registry/registry.ts'
import { readPreferences } from './request/read-preferences.ts'
import { readQuery } from './request/read-query.ts'
import { nearest, restError } from './rest-error.ts'
import { restErrors } from './rest-database-errors.ts'
import { deleteStatement, insertStatement, readStatement, updateStatement } from './sql/statements.ts'

interface Answer {
  body: string
  n: number
  total: number | undefined
}

const maxRecords = 10_000

/** A reload that another runtime has made takes effect here within so much time. */
const siblingsReloadMilliseconds = 500

/** @param hasSiblings other runtimes serve the same tenants, and may reload their schemas */
export function createRestArea(now: () => Date, hasSiblings = false): Area {
  const registry = new Registry({ ...(hasSiblings ? { recheckMilliseconds: siblingsReloadMilliseconds } : {}), now: () => now().getTime() })
  return {
    name: 'rest',
    routes: restRoutes(registry),
    start: async () => undefined,
    run: async () => undefined,
    close: async () => undefined,
    health: async () => ({ status: 'healthy', observed_at: now().toISOString() }),
    async usage(tenant) {
      const { rows } = await tenant.database.query(
        { role: 'service', reason: 'usage' },
        'select coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint as bytes from pg_class c' +
          ' join applied_schemas a on a.name = c.relname where c.relnamespace = $1::regnamespace and c.relkind = $2',
        tenant.id,
        'r',
      )
      return { document_bytes: Number(rows[0]?.['bytes'] ?? 0) }
    },
    forget: (tenantId) => registry.forget(tenantId),
    removeData: async (tenantId) => registry.forget(tenantId),
  }
}

function restRoutes(registry: Registry): FastifyPluginAsync {
  return async (app) => {
    interface Named {
      Params: { collection: string; id: string }
    }
    const anyone = { config: { access: 'anyone' }, bodyLimit: 20 * 1024 * 1024 } as const

    app.post('/admin/reload-schemas', { config: { access: 'service' } }, async (request) => {
      const { collections, actions } = await registry.reload(request.tenant)
      return { success: true, collections, actions }
    })

    app.get<Named>('/rest/v1/:collection', anyone, async (request, reply) => {
      const { plan } = await planned(registry, request)
      const preferences = readPreferences(request.headers)
      const answer = await run(request, readStatement(plan, preferences.count !== undefined))
      if (answer.total !== undefined && plan.offset > 0 && plan.offset >= answer.total) {
        throw restError('RANGE_NOT_SATISFIABLE', { code: 'PGRST103', message: `offset ${plan.offset} lies behind the last of ${answer.total} records` })
      }
      const last = plan.offset + answer.n - 1
      reply.header('content-range', `${answer.n === 0 ? '*' : `${plan.offset}-${last}`}/${answer.total ?? '*'}`)
      if (preferences.singular) return sendOne(reply, 200, answer)
      return sendJson(reply, answer.total !== undefined && answer.n < answer.total ? 206 : 200, answer.body)
    })

    app.get<Named>('/rest/v1/:collection/:id', anyone, async (request, reply) => {
      const collection = await found(registry, request)
      const answer = await run(request, readStatement(planOne(collection, request.params.id), false))
      return sendRecord(reply, collection, answer)
    })

    app.post<Named>('/rest/v1/:collection', anyone, async (request, reply) => {
      const { collection, plan } = await planned(registry, request)
      const { body } = request
      const records = writableRecords(collection, body, 'insert', plan)
      const columns = columnsOf(collection, records, readQuery(searchOf(request)).columns)
      const answer = await run(request, insertStatement(plan, columns, records))
      const preferences = readPreferences(request.headers)
      reply.header('content-range', '*/*')
      if (preferences.return === 'minimal' || preferences.return === 'headers-only' || (preferences.return === undefined && preferences.profiled)) {
        return reply.status(201).send()
      }
      if (preferences.singular) return sendOne(reply, 201, answer)
      // A caller of the specification sends one record and gets one.
      if (preferences.return === undefined && !Array.isArray(body)) return sendJson(reply, 201, answer.body.slice(1, -1))
      return sendJson(reply, 201, answer.body)
    })

    app.patch<Named>('/rest/v1/:collection', anyone, async (request, reply) => {
      const { collection, plan } = await planned(registry, request)
      requireFilter(request, plan, 'UPDATE')
      const answer = await update(request, collection, plan)
      return sendChanged(request, reply, answer)
    })

    app.patch<Named>('/rest/v1/:collection/:id', anyone, async (request, reply) => {
      const collection = await found(registry, request)
      return sendRecord(reply, collection, await update(request, collection, planOne(collection, request.params.id)))
    })

    app.delete<Named>('/rest/v1/:collection', anyone, async (request, reply) => {
      const { collection, plan } = await planned(registry, request)
      requireWritable(collection)
      requireFilter(request, plan, 'DELETE')
      return sendChanged(request, reply, await run(request, deleteStatement(plan)))
    })

    app.delete<Named>('/rest/v1/:collection/:id', anyone, async (request, reply) => {
      const collection = await found(registry, request)
      requireWritable(collection)
      const answer = await run(request, deleteStatement(planOne(collection, request.params.id)))
      return sendRecord(reply, collection, answer)
    })
  }
}

async function found(registry: Registry, request: FastifyRequest<{ Params: { collection: string } }>): Promise<Collection> {
  const profile = request.headers['accept-profile'] ?? request.headers['content-profile']
  if (profile !== undefined && profile !== 'public') {
    throw restError('NO_SUCH_COLLECTION', { code: 'PGRST106', message: `the schema "${String(profile)}" is not offered; the only one is "public"` })
  }
  const { collection: name } = request.params
  const collections = await registry.collections(request.tenant)
  const collection = collections.get(name)
  if (collection !== undefined) return collection
  const meant = nearest(name, collections.keys())
  throw restError('NO_SUCH_COLLECTION', {
    code: 'PGRST205',
    message: `there is no collection "${name}"`,
    hint: meant === undefined ? 'a new schema takes effect with POST /admin/reload-schemas' : `did you mean "${meant}"?`,
  })
}

async function planned(registry: Registry, request: FastifyRequest<{ Params: { collection: string } }>) {
  const collection = await found(registry, request)
  return { collection, plan: planQuery(collection, readQuery(searchOf(request))) }
}

function searchOf(request: FastifyRequest): string {
  const mark = request.url.indexOf('?')
  return mark < 0 ? '' : request.url.slice(mark + 1)
}

async function run(request: FastifyRequest, statement: Statement): Promise<Answer> {
  try {
    const [result] = await request.tenant.database.run(request.rls, statement)
    const row = result?.rows[0]
    return { body: String(row?.['body']), n: Number(row?.['n']), total: row?.['total'] === null ? undefined : Number(row?.['total']) }
  } catch (error) {
    throw databaseError(error, restErrors(request.rls))
  }
}

async function update(request: FastifyRequest, collection: Collection, plan: Plan): Promise<Answer> {
  const [record = {}] = writableRecords(collection, request.body, 'update', plan)
  const columns = columnsOf(collection, [record], undefined)
  if (columns.length === 0) return run(request, readStatement(plan, false))
  return run(request, updateStatement(plan, columns, record))
}

function requireWritable(collection: Collection): void {
  if (collection.writable === 'no') {
    throw restError('FORBIDDEN', { code: '42501', message: `collection "${collection.name}" is read-only; use the interface it belongs to` })
  }
}

function requireFilter(request: FastifyRequest, plan: Plan, what: string): void {
  const { limit, offset } = readQuery(searchOf(request))
  if (limit !== undefined || offset > 0) {
    throw restError('INVALID_QUERY', { code: 'PGRST100', message: `${what} takes no limit and no offset: it is for all that match` })
  }
  if (plan.filters.length === 0) throw restError('INVALID_QUERY', { code: '21000', message: `${what} needs a filter; to mean every record, say so, for example with ?${plan.collection.primary}=not.is.null` })
}

/** The body's records, checked. */
function writableRecords(collection: Collection, body: unknown, kind: 'insert' | 'update', plan: Plan): Record<string, unknown>[] {
  requireWritable(collection)
  if (plan.offset !== 0) throw restError('INVALID_QUERY', { code: 'PGRST100', message: 'a write takes no offset' })
  const records: unknown[] = kind === 'insert' && Array.isArray(body) ? body : [body]
  if (records.length > maxRecords) throw restError('BODY_TOO_LARGE', { code: 'PGRST102', message: `at most ${maxRecords} records at once` })
  return records.map((record, index) => {
    const place = Array.isArray(body) ? `[${index}]` : ''
    return collection.writable === 'schemas' ? schemaRecord(record, kind) : checkRecord(collection, record, kind, place)
  })
}

/** A row of `schemas`: checked as a whole when it is new, by its parts when it is changed; a reload checks it again. */
function schemaRecord(value: unknown, kind: 'insert' | 'update'): Record<string, unknown> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw restError('BAD_REQUEST', { code: 'PGRST102', message: 'the body must be an object' })
  const { name, fields, rls_policy, ...others } = value as Record<string, unknown>
  const [first] = Object.keys(others)
  if (first !== undefined) throw restError('UNKNOWN_FIELD', { code: 'PGRST204', message: `collection "schemas" has no field "${first}" that can be written` })
  const policy = rls_policy ?? { type: 'service' }
  if (kind === 'insert') {
    checkSchema({ name, fields, rls_policy: policy })
    return { name, fields, rls_policy: policy }
  }
  checkSchema({ name: name ?? 'unchanged', fields: fields ?? [{ name: 'id', type: 'uuid', primary: true }], rls_policy: policy })
  return {
    ...(name === undefined ? {} : { name }),
    ...(fields === undefined ? {} : { fields }),
    ...(rls_policy === undefined ? {} : { rls_policy }),
  }
}

/** The columns a write names: those of `columns=`, else every key of any record. */
function columnsOf(collection: Collection, records: readonly Record<string, unknown>[], named: readonly string[] | undefined): Column[] {
  const unknown = named?.find((name) => !collection.columns.has(name))
  if (unknown !== undefined) {
    throw restError('UNKNOWN_FIELD', { code: 'PGRST204', message: `collection "${collection.name}" has no field "${unknown}"` })
  }
  const names = new Set(named ?? records.flatMap((record) => Object.keys(record)))
  return [...collection.columns.values()].filter((column) => names.has(column.name))
}

function sendJson(reply: FastifyReply, status: number, body: string) {
  return reply.status(status).type('application/json; charset=utf-8').send(body)
}

/** The spec's answer for one record: it, or a 404 that tells no more than that it is not to be seen. */
function sendRecord(reply: FastifyReply, collection: Collection, answer: Answer) {
  if (answer.n === 0) throw restError('NO_SUCH_RECORD', { code: 'PGRST116', message: `there is no such record in "${collection.name}"` })
  return sendJson(reply, 200, answer.body.slice(1, -1))
}

/** Exactly one record as an object, as a singular Accept header demands. */
function sendOne(reply: FastifyReply, status: number, answer: Answer) {
  if (answer.n !== 1) {
    throw restError('NOT_ACCEPTABLE', {
      code: 'PGRST116', message: 'Cannot coerce the result to a single JSON object', details: `The result contains ${answer.n} rows`,
    })
  }
  return reply.status(status).type('application/vnd.pgrst.object+json; charset=utf-8').send(answer.body.slice(1, -1))
}

function sendChanged(request: FastifyRequest, reply: FastifyReply, answer: Answer) {
  const preferences = readPreferences(request.headers)
  reply.header('content-range', `*/${preferences.count === undefined ? '*' : answer.n}`)
  if (preferences.return !== 'representation') return reply.status(204).send()
  if (preferences.singular) return sendOne(reply, 200, answer)
  return sendJson(reply, 200, answer.body)
}
