// GET /v1/tenants/{id}/drift (specification, section 4.4), and the repair of all differences or of chosen ones.
import { Type } from 'typebox'
import { isTargeted } from '../engines/index.ts'
import type { Api } from '../http/api.ts'
import { respondOnce, type ResponseDeps } from '../http/idempotency.ts'
import { NoQuery, waitSeconds, writeContext } from '../http/parameters.ts'
import { ControlError } from '../platform/errors.ts'
import type { RegionConfig } from '../regions/index.ts'
import {
  driftPolicies,
  foundTenant,
  requireDedicated,
  type TenantState,
  tenantStateBody,
  toTenantStateBody,
  type WaitDeps,
  waitUntilSettled,
} from '../tenants/index.ts'
import { chooseRepair, type ChosenRepair, type Drift, type FieldName, type RepairableDifference } from './drift.ts'
import type { DriftReader } from './read-drift.ts'

const DriftValue = Type.Union([Type.String(), Type.Number(), Type.Boolean(), Type.Null()])

const RepairBody = Type.Object({
  scope: Type.Enum(['field', 'component', 'tenant'], {
    description: 'The smallest part that contains the field and can be repaired alone',
  }),
  components: Type.Array(Type.String(), { description: 'The components that the repair changes' }),
  also: Type.Array(Type.Object({ component: Type.String(), field: Type.String() }), {
    description: 'Other present differences that the repair ends',
  }),
  interrupts: Type.Boolean({ description: 'Whether requests to the tenant may wait or fail meanwhile' }),
})

const DriftBody = Type.Object({
  tenant_id: Type.String(),
  policy: Type.Enum([...driftPolicies]),
  observed_at: Type.String(),
  drifted: Type.Boolean(),
  differences: Type.Array(
    Type.Object({
      component: Type.String(),
      field: Type.String(),
      desired: DriftValue,
      observed: DriftValue,
      repair: RepairBody,
    }),
  ),
})

const Name = Type.String({ minLength: 1, maxLength: 200 })
const RepairRequest = Type.Union([
  Type.Object(
    {
      fields: Type.Optional(
        Type.Array(Type.Object({ component: Name, field: Name }, { additionalProperties: false }), {
          minItems: 1,
          maxItems: 100,
          description: 'Default: everything',
        }),
      ),
    },
    { additionalProperties: false },
  ),
  Type.Null(),
])
const Repaired = tenantStateBody('null if nothing differs')

/** The dependencies of the routes of drift. */
export interface DriftRoutesDeps extends ResponseDeps, WaitDeps {
  regions: readonly RegionConfig[]
  drift: DriftReader
}

/** Adds the routes that return and repair the differences between what exists of a tenant and what should exist. */
export function addDriftRoutes(app: Api, deps: DriftRoutesDeps): void {
  app.get(
    '/v1/tenants/:id/drift',
    {
      config: { scopes: ['admin', 'read'] },
      schema: {
        summary: 'The differences between what exists of a tenant and what should exist',
        tags: ['tenants'],
        querystring: NoQuery,
        params: Type.Object({ id: Type.String() }),
        response: { 200: DriftBody },
      },
    },
    async (request) => toDriftBody(await deps.drift.read(await foundTenant(deps, request.params.id))),
  )

  app.post(
    '/v1/tenants/:id/drift/repair',
    {
      config: { scopes: ['admin'] },
      schema: {
        summary: 'Repair all differences of a tenant, or chosen ones',
        description: 'The drift policy stays, and decides about all other differences.',
        tags: ['tenants'],
        querystring: NoQuery,
        params: Type.Object({ id: Type.String() }),
        body: RepairRequest,
        response: { 202: Repaired },
      },
    },
    async (request, reply) => {
      const wait = waitSeconds(request)
      const context = writeContext(request)
      const tenant = await foundTenant(deps, request.params.id)
      requireDedicated(tenant, 'A repair of drift')
      reply.status(202)
      return respondOnce(deps, context, reply, async (record) => {
        const present = (state: TenantState) => toTenantStateBody(deps, state)
        const { differences } = await deps.drift.read(tenant)
        const names = request.body?.fields
        if (names === undefined && differences.length === 0) return present({ tenant, operation: undefined })
        const { fields, targets } = chosen(differences, names)
        const begun = await record((write) => deps.tenants.repairDrift(tenant.id, { targets }, fields, write), present)
        return present(await waitUntilSettled(deps, begun, wait, request))
      })
    },
  )
}

/** Returns the repair of the named fields, by default of everything. @throws ControlError NOT_DRIFTED */
function chosen(differences: readonly RepairableDifference[], names: readonly FieldName[] | undefined): ChosenRepair {
  if (names === undefined) return { fields: [], targets: null }
  const choice = chooseRepair(differences, names)
  if (!('unknown' in choice)) return choice
  const present = differences.map(({ component, field }) => `${component} ${field}`)
  throw new ControlError(
    'NOT_DRIFTED',
    `The field "${choice.unknown.field.slice(0, 100)}" of "${choice.unknown.component.slice(0, 100)}" does not differ. ` +
      (present.length === 0 ? 'Nothing differs.' : `These differ: ${present.join(', ')}.`),
  )
}

function toDriftBody({ differences, ...drift }: Drift) {
  return { ...drift, differences: differences.map((difference) => toDifferenceBody(difference, differences)) }
}

function toDifferenceBody({ repair, ...difference }: RepairableDifference, all: readonly RepairableDifference[]) {
  const others = all.filter((one) => one.component !== difference.component || one.field !== difference.field)
  if (repair === null) {
    const components = [...new Set(all.map(({ component }) => component))]
    return {
      ...difference,
      repair: { scope: 'tenant' as const, components, also: others.map(toName), interrupts: true },
    }
  }
  const { targets, interrupts } = repair
  const also = others.filter((one) => isTargeted(targets, one)).map(toName)
  const isField = targets.every(({ field }) => field !== null) && also.length === 0
  const changed = targets.filter(({ component, field }) => field === null || component === difference.component)
  const components = [...new Set([...changed, ...also].map(({ component }) => component))]
  return {
    ...difference,
    repair: { scope: isField ? ('field' as const) : ('component' as const), components, also, interrupts },
  }
}

function toName({ component, field }: FieldName): FieldName {
  return { component, field }
}
