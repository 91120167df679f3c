// GET /v1/tenants/{id}/usage and /usage/{month} (specification, section 4.4).
import { Type } from 'typebox'
import { ControlError } from '../../errors.ts'
import type { Api } from '../api.ts'
import type { ApiDeps } from '../deps.ts'
import { foundTenant } from '../lookup.ts'
import { NoQuery } from './read-tenants.ts'

const Numbers = Type.Record(Type.String(), Type.Integer())
const MaybeInteger = Type.Union([Type.Integer(), Type.Null()])

const ComponentUsage = Type.Object({
  cpu_seconds: Type.Union([Type.Number(), Type.Null()], { description: 'Since its container was started' }), memory_bytes: MaybeInteger, disk_bytes: MaybeInteger,
})

const UsageBody = Type.Object({
  tenant_id: Type.String(),
  month: Type.String(),
  incomplete: Type.Boolean({ description: 'True while counters of the month may still come in' }),
  period: Type.Object({ start: Type.String(), end: Type.String() }),
  resources: Type.Object({
    api_requests: Type.Object({ count: Type.Integer(), limit: MaybeInteger, by_group: Numbers, by_method: Numbers, by_status: Numbers }),
    storage: Type.Object({
      documents_bytes: MaybeInteger, documents_limit: MaybeInteger, files_bytes: MaybeInteger, files_count: MaybeInteger, files_limit: MaybeInteger,
    }),
    egress: Type.Object({ bytes: Type.Integer() }),
    realtime_connections: Type.Object({ peak: Type.Integer(), average: Type.Number(), limit: MaybeInteger }),
    functions: Type.Object({ invocations: MaybeInteger }),
  }),
  components: Type.Optional(
    Type.Object({ postgres: ComponentUsage, runtime: ComponentUsage }, { description: 'What its own services take now; null where one does not run or can not be asked' }),
  ),
})

export function addTenantUsage(app: Api, deps: ApiDeps): void {
  const access = ['admin', 'read', 'billing'] as const

  app.get(
    '/v1/tenants/:id/usage',
    {
      config: { scopes: access },
      schema: { summary: 'Usage of the current month', tags: ['usage'], params: Type.Object({ id: Type.String() }), querystring: NoQuery, response: { 200: UsageBody } },
    },
    async (request) => deps.usage.read(await foundTenant(deps, request.params.id), startOfMonth(deps.now())),
  )

  app.get(
    '/v1/tenants/:id/usage/:month',
    {
      config: { scopes: access },
      schema: {
        summary: 'Usage of a month, YYYY-MM',
        description: 'A month before the tenant existed has usage zero.',
        tags: ['usage'],
        params: Type.Object({ id: Type.String(), month: Type.String() }),
        querystring: NoQuery,
        response: { 200: UsageBody },
      },
    },
    async (request) => {
      const month = parseMonth(request.params.month)
      if (month > deps.now()) throw new ControlError('FUTURE_MONTH', `month ${request.params.month} has not begun`)
      return deps.usage.read(await foundTenant(deps, request.params.id), month)
    },
  )
}

export function startOfMonth(at: Date): Date {
  return new Date(Date.UTC(at.getUTCFullYear(), at.getUTCMonth(), 1))
}

function parseMonth(text: string): Date {
  const match = /^(\d{4})-(0[1-9]|1[0-2])$/.exec(text)
  if (match === null || Number(match[1]) < 1970) throw new ControlError('INVALID_MONTH', `month "${text}" must be YYYY-MM`)
  return new Date(Date.UTC(Number(match[1]), Number(match[2]) - 1, 1))
}
