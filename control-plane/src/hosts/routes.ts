// GET /v1/hosts and /v1/hosts/{id}: the hosts of the regions with their free resources. Each region has one host.
import { Type, type Static } from 'typebox'
import type { Api } from '../http/api.ts'
import { NoQuery } from '../http/parameters.ts'
import { limitOf } from '../keys/index.ts'
import { ControlError } from '../platform/errors.ts'
import type { RegionCondition, RegionConfig } from '../regions/index.ts'
import type { HostRecord, TenantCounts } from './host.ts'
import type { HostStore } from './store.ts'

const Amount = Type.Union([Type.Number(), Type.Null()])
const Free = { description: 'What programs can use now; null if it could not be read' }
const Reserved = { description: 'The sum of the limits of services that run' }

const HostBody = Type.Object({
  id: Type.String({ description: 'The region, which has one host' }),
  name: Type.Union([Type.String(), Type.Null()], { description: 'The name that the host reports' }),
  engine: Type.String(),
  api_version: Type.Union([Type.String(), Type.Null()]),
  state: Type.Enum(['reachable', 'unreachable', 'unknown'], { description: '`unknown` before the first measurement' }),
  error: Type.Union([Type.String(), Type.Null()], { description: 'Why the last measurement has failed' }),
  last_seen_at: Type.Union([Type.String(), Type.Null()], {
    description: 'The time of the last successful measurement, from which all amounts are; ISO 8601, UTC',
  }),
  condition: Type.Union([
    Type.Object({ status: Type.String(), reason: Type.String(), message: Type.String() }),
    Type.Null(),
  ]),
  tenants: Type.Object({ total: Type.Integer(), dedicated: Type.Integer() }),
  cpu_millis: Type.Object(
    {
      total: Amount,
      reserved_by_tenants: Type.Integer(Reserved),
      reserved_by_platform: Type.Integer(Reserved),
      free: Type.Union([Type.Number(), Type.Null()], Free),
    },
    { description: 'Thousandths of a core' },
  ),
  memory_bytes: Type.Object({
    total: Amount,
    reserved_by_tenants: Type.Integer(Reserved),
    reserved_by_platform: Type.Integer(Reserved),
    free: Type.Union([Type.Number(), Type.Null()], Free),
  }),
  disk_bytes: Type.Object(
    {
      total: Amount,
      reserved_by_tenants: Type.Integer({ description: 'The sum of the quotas of documents and files' }),
      tenants_without_quota: Type.Integer({ description: 'Tenants that the sum does not contain' }),
      free: Type.Union([Type.Number(), Type.Null()], Free),
    },
    { description: 'The disk with the volumes' },
  ),
  warnings: Type.Array(Type.String()),
})

/** The dependencies of the routes of hosts. */
export interface HostRoutesDeps {
  regions: readonly RegionConfig[]
  hosts: Pick<HostStore, 'records' | 'tenantCounts'>
  /** Returns the region's condition at the leader's last check; undefined without one. */
  regionCondition(region: string): RegionCondition | undefined
}

/** Adds the routes that return the hosts of the regions. */
export function addHostRoutes(app: Api, deps: HostRoutesDeps): void {
  app.get(
    '/v1/hosts',
    {
      config: { scopes: ['admin', 'read'] },
      schema: {
        summary: 'The hosts of the regions, with their free resources',
        tags: ['plans'],
        querystring: NoQuery,
        response: { 200: Type.Object({ hosts: Type.Array(HostBody) }) },
      },
    },
    async (request) => {
      const { region } = limitOf(request)
      return { hosts: await hostsOf(deps, region) }
    },
  )

  app.get(
    '/v1/hosts/:id',
    {
      config: { scopes: ['admin', 'read'] },
      schema: {
        summary: 'The host of a region',
        tags: ['plans'],
        querystring: NoQuery,
        params: Type.Object({ id: Type.String() }),
        response: { 200: HostBody },
      },
    },
    async (request) => {
      const [host] = await hostsOf(deps, request.params.id)
      if (host === undefined)
        throw new ControlError('HOST_NOT_FOUND', 'There is no such host. Its ID is that of its region.')
      return host
    },
  )
}

/** Returns the hosts of all regions, or of one. */
async function hostsOf(deps: HostRoutesDeps, region: string | undefined): Promise<Static<typeof HostBody>[]> {
  const [records, counts] = await Promise.all([deps.hosts.records(), deps.hosts.tenantCounts()])
  return deps.regions
    .filter(({ id }) => region === undefined || id === region)
    .map((config) =>
      toHostBody(
        config,
        records.find(({ regionId }) => regionId === config.id),
        counts.get(config.id),
        deps.regionCondition(config.id),
      ),
    )
}

const nothing = { cpuMillis: 0, memoryBytes: 0 }
const noAmounts = { total: null, free: null }

function toHostBody(
  { id, engine }: Pick<RegionConfig, 'id' | 'engine'>,
  record: HostRecord | undefined,
  counts: TenantCounts | undefined,
  condition: RegionCondition | undefined,
): Static<typeof HostBody> {
  const measured = record?.measurement
  const tenants = measured?.reservedByTenants ?? nothing
  const platform = measured?.reservedByPlatform ?? nothing
  const amounts = ({ total, free }: { total: number | null; free: number | null } = noAmounts) => ({ total, free })
  return {
    id,
    name: measured?.name ?? null,
    engine,
    api_version: measured?.apiVersion ?? null,
    state: record === undefined ? 'unknown' : record.error === undefined ? 'reachable' : 'unreachable',
    error: record?.error ?? null,
    last_seen_at: record?.measuredAt?.toISOString() ?? null,
    condition:
      condition === undefined
        ? null
        : { status: condition.status, reason: condition.reason, message: condition.message },
    tenants: { total: counts?.total ?? 0, dedicated: counts?.dedicated ?? 0 },
    cpu_millis: {
      ...amounts(measured?.cpuMillis),
      reserved_by_tenants: tenants.cpuMillis,
      reserved_by_platform: platform.cpuMillis,
    },
    memory_bytes: {
      ...amounts(measured?.memoryBytes),
      reserved_by_tenants: tenants.memoryBytes,
      reserved_by_platform: platform.memoryBytes,
    },
    disk_bytes: {
      ...amounts(measured?.diskBytes),
      reserved_by_tenants: Number(counts?.quotaBytes ?? 0n),
      tenants_without_quota: counts?.unlimited ?? 0,
    },
    warnings: measured?.warnings ?? [],
  }
}
