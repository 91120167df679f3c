// Reads a request before it is planned, for every route of the interface.
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { parseJson } from '../../http/parse-json.ts'
import type { PlanScope } from '../plan/plan.ts'
import type { JsonBody } from '../plan/plan-write.ts'
import type { Catalog, Relation } from '../registry/catalog.ts'
import type { DocumentQuota } from '../document-quota.ts'
import type { Registry } from '../registry/registry.ts'
import { notAcceptable, readAccept, type Format } from '../request/read-accept.ts'
import { readPreferences, type Preferences } from '../request/read-preferences.ts'
import { readQuery, type Query } from '../request/read-query.ts'
import { didYouMean, restError } from '../rest-error.ts'

export interface RestDeps {
  registry: Registry
  quota: DocumentQuota
  /** Whether `Prefer: tx=rollback` is allowed. */
  allowsRollback: boolean
}

export interface RestRequest extends PlanScope {
  query: Query
  preferences: Preferences
  format: Format
  /** Whether the caller is a PostgREST client, which expects an empty response unless it requests rows. */
  isProfiled: boolean
}

/** The routes are open to all callers. The policies of the relation decide. */
export const publicRoute = { config: { access: 'public' }, bodyLimit: 20 * 1024 * 1024 } as const

/** Parses bodies and also keeps their text, because Postgres reads numbers that JavaScript would round. */
export function keepBodiesAsText(app: FastifyInstance): void {
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('application/json', { parseAs: 'string' }, (_request, body, done) => {
    const text = String(body)
    if (text.trim() === '') {
      done(null, undefined)
      return
    }
    try {
      done(null, { text, value: parseJson(text) } satisfies JsonBody)
    } catch (error) {
      const details = error instanceof Error ? { details: error.message } : {}
      done(
        restError('INVALID_JSON', {
          code: 'PGRST102',
          message: 'The body is not valid JSON.',
          cause: error,
          ...details,
        }),
      )
    }
  })
  app.addContentTypeParser('*', { parseAs: 'string' }, ({ headers }, body, done) => {
    if (String(body) === '') done(null, undefined)
    else
      done(
        restError('BAD_REQUEST', {
          code: 'PGRST102',
          message: `Content-Type not acceptable: ${String(headers['content-type'])}`,
          hint: 'Send application/json.',
        }),
      )
  })
}

export interface ReadOptions {
  /** Returns the parameters that are a function's arguments instead of filters. */
  argumentNames?: (catalog: Catalog) => ReadonlySet<string>
  /** True for the interface's description. */
  describes?: true
}

/**
 * Reads a request.
 * @throws RuntimeError for an invalid header or parameter
 */
export async function readRestRequest(
  { registry, allowsRollback }: RestDeps,
  request: FastifyRequest,
  { argumentNames, describes }: ReadOptions = {},
): Promise<RestRequest> {
  const { headers, tenant, rls } = request
  const profile = headers['content-profile'] ?? headers['accept-profile']
  if (profile !== undefined && profile !== 'public') {
    throw restError('NOT_ACCEPTABLE', {
      code: 'PGRST106',
      message: `Invalid schema: ${String(profile)}`,
      hint: 'Only the following schemas are exposed: public',
    })
  }
  const format = readAccept(headers.accept)
  if (format.kind === 'openapi' && describes === undefined) throw notAcceptable(headers.accept)
  const catalog = await registry.catalog(tenant)
  return {
    catalog,
    seesAll: rls.role === 'service',
    query: readQuery(searchOf(request), argumentNames?.(catalog)),
    preferences: readPreferences(headers['prefer'], allowsRollback),
    format,
    isProfiled: profile !== undefined,
  }
}

function searchOf({ url }: FastifyRequest): string {
  const mark = url.indexOf('?')
  return mark < 0 ? '' : url.slice(mark + 1)
}

/**
 * Returns a served relation.
 * @throws RuntimeError NO_SUCH_COLLECTION (PGRST205)
 */
export function relationOf({ relations }: Catalog, name: string): Relation {
  const relation = relations.get(name)
  if (relation !== undefined) return relation
  throw restError('NO_SUCH_COLLECTION', {
    code: 'PGRST205',
    message: `The collection "${name}" does not exist.`,
    hint: 'A new schema takes effect with POST /admin/reload-schemas.',
    ...didYouMean(name, relations.keys()),
  })
}
