// GET /v1/hosts, /v1/hosts/{id} and /v1/regions/{id}/hosts: the hosts of the regions with their free resources.
import { Type, type Static } from 'typebox'
import type { Api } from '../http/api.ts'
import { NoQuery } from '../http/parameters.ts'
import { limitOf } from '../keys/index.ts'
import { ControlError } from '../platform/errors.ts'
import type { PlacementStore } from '../placement/index.ts'
import { regionInPath, type RegionCondition, type RegionConfig } from '../regions/index.ts'
import { hostsOf as hostsOfRegion } from '../stacks/index.ts'
import type { HostRecord, TenantCounts } from './host.ts'
import type { HostStore } from './store.ts'

const Amount = Type.Union([Type.Number(), Type.Null()])
const Free = { description: 'What programs can use now; null if it could not be read' }
const Reserved = { description: 'The sum of the limits of services that run' }

const HostBody = Type.Object({
  id: Type.String({ description: 'The region, if it has one host; otherwise REGION.HOST' }),
  region: Type.String(),
  zone: Type.Union([Type.String(), Type.Null()], { description: 'Hosts of one zone may fail together' }),
  name: Type.Union([Type.String(), Type.Null()], { description: 'The name that the host reports' }),
  engine: Type.String(),
  api_version: Type.Union([Type.String(), Type.Null()]),
  state: Type.Enum(['reachable', 'unreachable', 'unknown'], { description: '`unknown` before the first measurement' }),
  use: Type.Enum(['active', 'draining', 'lost'], { description: 'Whether services are put on the host, or leave it' }),
  error: Type.Union([Type.String(), Type.Null()], { description: 'Why the last measurement has failed' }),
  last_seen_at: Type.Union([Type.String(), Type.Null()], {
    description: 'The time of the last successful measurement, from which all amounts are; ISO 8601, UTC',
  }),
  condition: Type.Union(
    [
      Type.Object({
        status: Type.String(),
        reason: Type.String(),
        message: Type.String(),
        observed_at: Type.String({ description: 'ISO 8601, UTC' }),
      }),
      Type.Null(),
    ],
    { description: 'The condition `Ready` of the region; null before the first observation' },
  ),
  tenants: Type.Object(
    { total: Type.Integer(), dedicated: Type.Integer() },
    { description: 'The tenants of the region; on one of several hosts, `dedicated` are those with services there' },
  ),
  services: Type.Array(
    Type.Object({ tenant_id: Type.String(), service: Type.String(), memory_bytes: Type.Integer() }),
    {
      description: 'The services that tenants have on one of several hosts, with the memory that they reserve',
    },
  ),
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
  hosts: Pick<HostStore, 'records' | 'tenantCounts' | 'placements'>
  placements: Pick<PlacementStore, 'states' | 'setState'>
  /** Returns the conditions of all regions at the leader's last check, by region. */
  regionConditions(): Promise<ReadonlyMap<string, readonly RegionCondition[]>>
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
    '/v1/regions/:id/hosts',
    {
      config: { scopes: ['admin', 'read'] },
      schema: {
        summary: 'The hosts of a region, with what runs there',
        tags: ['plans'],
        querystring: NoQuery,
        params: Type.Object({ id: Type.String() }),
        response: { 200: Type.Object({ hosts: Type.Array(HostBody) }) },
      },
    },
    async (request) => {
      const { id } = regionInPath(deps.regions, request.params.id)
      return { hosts: await hostsOf(deps, id) }
    },
  )

  app.get(
    '/v1/hosts/:id',
    {
      config: { scopes: ['admin', 'read'] },
      schema: {
        summary: 'One host',
        tags: ['plans'],
        querystring: NoQuery,
        params: Type.Object({ id: Type.String() }),
        response: { 200: HostBody },
      },
    },
    async (request) => {
      const { id } = request.params
      const host = (await hostsOf(deps, id.split('.')[0])).find((one) => one.id === id)
      if (host === undefined)
        throw new ControlError(
          'HOST_NOT_FOUND',
          'There is no such host. Its ID is that of its region, or REGION.HOST in a region with several.',
        )
      return host
    },
  )
}

/** Returns the hosts of all regions, or of one. */
async function hostsOf(deps: HostRoutesDeps, region: string | undefined): Promise<Static<typeof HostBody>[]> {
  const [records, counts, conditions] = await Promise.all([
    deps.hosts.records(),
    deps.hosts.tenantCounts(),
    deps.regionConditions(),
  ])
  const recordOf = (regionId: string, hostId: string) =>
    records.find((record) => record.regionId === regionId && record.hostId === hostId)
  const chosen = deps.regions.filter(({ id }) => region === undefined || id === region)
  const found = await Promise.all(
    chosen.map(async (config) => {
      const { id, docker } = config
      const condition = conditions.get(id)?.find(({ type }) => type === 'Ready')
      const several = docker === undefined ? [] : hostsOfRegion(docker)
      if (several.length === 0) return [toHostBody(config, recordOf(id, ''), counts.get(id), condition)]
      const [placed, states] = await Promise.all([deps.hosts.placements(id), deps.placements.states(id)])
      return several.map((host) => {
        const services = placed.filter(({ hostId }) => hostId === host.id)
        const dedicated = new Set(services.map(({ tenantId }) => tenantId)).size
        return {
          ...toHostBody(config, recordOf(id, host.id), { ...(counts.get(id) ?? noTenants), dedicated }, condition),
          id: `${id}.${host.id}`,
          use: states.get(host.id) ?? ('active' as const),
          zone: host.zone ?? null,
          services: services.map(({ tenantId, service, memoryBytes }) => ({
            tenant_id: tenantId,
            service,
            memory_bytes: memoryBytes,
          })),
        }
      })
    }),
  )
  return found.flat()
}

const nothing = { cpuMillis: 0, memoryBytes: 0 }
const noAmounts = { total: null, free: null }
const noTenants: TenantCounts = { total: 0, dedicated: 0, quotaBytes: 0n, unlimited: 0 }

function shownCondition({ status, reason, message, observed_at }: RegionCondition) {
  return { status, reason, message, observed_at }
}

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
    region: id,
    zone: null,
    services: [],
    use: 'active',
    name: measured?.name ?? null,
    engine,
    api_version: measured?.apiVersion ?? null,
    state: record === undefined ? 'unknown' : record.error === undefined ? 'reachable' : 'unreachable',
    error: record?.error ?? null,
    last_seen_at: record?.measuredAt?.toISOString() ?? null,
    condition: condition === undefined ? null : shownCondition(condition),
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
