// Reads a request before it is planned, for every route of the interface.
import { nearest } from '@tenantry/contract'
import type { FastifyInstance, FastifyRequest, RouteGenericInterface } from 'fastify'
import type { MediaLookup } from '../plan/media.ts'
import type { PlanScope } from '../plan/plan.ts'
import type { Catalog, Relation } from '../registry/catalog.ts'
import type { DocumentQuota } from '../document-quota.ts'
import type { Registry } from '../registry/registry.ts'
import { notAcceptable, readAccept, type Format } from '../request/read-accept.ts'
import { readPlanRequest, type PlanRequest } from '../request/read-plan-request.ts'
import { readPreferences, type Preferences } from '../request/read-preferences.ts'
import { readQuery, type Query } from '../request/read-query.ts'
import { restError } from '../rest-error.ts'
import { endPhase } from './server-timing.ts'

export interface RestDeps {
  registry: Registry
  quota: DocumentQuota
  /** Whether `Prefer: tx=rollback` is allowed. */
  allowsRollback: boolean
  allowsAggregates: boolean
}

export interface RestRequest extends PlanScope {
  query: Query
  preferences: Preferences
  format: Format
  /** The plan that is requested instead of the rows, which only the service role may see. */
  explain: PlanRequest | undefined
  /** Whether the caller is a PostgREST client, which expects an empty response unless it requests rows. */
  isProfiled: boolean
}

/** The routes are open to all callers. The policies of the relation decide. */
export const publicRoute = { config: { access: 'public' }, bodyLimit: 20 * 1024 * 1024 } as const

/**
 * Makes a hook that reads a request before its body, so that nothing is buffered for one that is rejected without it, and
 * the function with which the handler gets the result.
 */
export function beforeBody<Route extends RouteGenericInterface, Result>(
  read: (request: FastifyRequest<Route>) => Promise<Result>,
): {
  preParsing: (request: FastifyRequest<Route>) => Promise<undefined>
  take: (request: FastifyRequest<Route>) => Promise<Result>
} {
  const results = new WeakMap<FastifyRequest<Route>, Result>()
  return {
    async preParsing(request) {
      results.set(request, await read(request))
      return undefined
    },
    take: async (request) => results.get(request) ?? read(request),
  }
}

export interface ReadOptions {
  /** Returns the parameters that are a function's arguments instead of filters, and whether a call must contain them. */
  argumentNames?: (catalog: Catalog) => ReadonlyMap<string, boolean>
  /** Returns what the tenant's functions make of the response. */
  media?: (catalog: Catalog, query: Query) => MediaLookup
  /** True for the interface's description. */
  describes?: true
}

/**
 * Reads a request.
 * @throws RuntimeError for an invalid header or parameter
 */
export async function readRestRequest(
  { registry, allowsRollback, allowsAggregates }: RestDeps,
  request: FastifyRequest,
  { argumentNames, media, describes }: ReadOptions = {},
): Promise<RestRequest> {
  const { headers, rls } = request
  const catalog = await catalogOf(registry, request)
  const query = readQuery(searchOf(request), argumentNames?.(catalog))
  const explain = rls.role === 'service' ? readPlanRequest(headers.accept) : undefined
  const format = readAccept(explain?.of ?? headers.accept, media?.(catalog, query))
  const preferences = readPreferences(headers['prefer'], allowsRollback)
  endPhase(request, 'parse')
  if (format.kind === 'openapi' && describes === undefined) throw notAcceptable(headers.accept)
  return {
    catalog,
    seesAll: rls.role === 'service',
    allowsAggregates: allowsAggregates && catalog.settings.db_aggregates_enabled,
    query,
    preferences,
    format,
    explain,
    isProfiled: headers['content-profile'] !== undefined || headers['accept-profile'] !== undefined,
  }
}

/** The schemas that requests have selected where there are several. Their responses name them. */
const selected = new WeakMap<FastifyRequest, string>()

/**
 * Returns the catalog of the schema that the request selects: the first one, unless a header names another.
 * @throws RuntimeError NOT_ACCEPTABLE (PGRST106)
 */
export async function catalogOf(registry: Registry, request: FastifyRequest): Promise<Catalog> {
  const { headers, method, tenant } = request
  const catalogs = await registry.catalogs(tenant)
  const writes = ['POST', 'PATCH', 'PUT', 'DELETE'].includes(method)
  const [first = ''] = catalogs.keys()
  const schema = String((writes ? headers['content-profile'] : headers['accept-profile']) ?? first)
  const catalog = catalogs.get(schema)
  if (catalog === undefined)
    throw restError('NOT_ACCEPTABLE', {
      code: 'PGRST106',
      message: `Invalid schema: ${schema.slice(0, 100)}`,
      hint: `Only the following schemas are exposed: ${[...catalogs.keys()].join(', ')}`,
    })
  if (catalogs.size > 1) selected.set(request, schema)
  return catalog
}

/** Names the schema of the content in `Content-Profile`, where the interface has several. */
export function addContentProfile(app: FastifyInstance): void {
  app.addHook('onSend', (request, reply, payload, done) => {
    const schema = selected.get(request)
    if (schema !== undefined && reply.statusCode < 300 && reply.hasHeader('content-type'))
      void reply.header('content-profile', schema)
    done(null, payload)
  })
}

function searchOf({ url }: FastifyRequest): string {
  const mark = url.indexOf('?')
  return mark < 0 ? '' : url.slice(mark + 1)
}

/**
 * Returns a served relation.
 * @throws RuntimeError NO_SUCH_COLLECTION (PGRST205)
 */
export function relationOf({ relations, schema }: Catalog, name: string): Relation {
  const relation = relations.get(name)
  if (relation !== undefined) return relation
  const meant = nearest(name, relations.keys())
  throw restError('NO_SUCH_COLLECTION', {
    code: 'PGRST205',
    message: `Could not find the table '${schema}.${name}' in the schema cache`,
    hint:
      meant === undefined
        ? 'A new schema takes effect with POST /admin/reload-schemas.'
        : `Perhaps you meant the table '${schema}.${meant}'`,
  })
}
