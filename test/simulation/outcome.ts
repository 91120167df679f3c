// Checks the state after all faults have ended and enough time has passed. It reads all objects and does not use the
// reconciler's own plan.
import type { RoutePhase } from '@tenantry/contract'
import { restartPolicy } from '#control-plane/engines/container-host.ts'
import type { Condition, Status } from '#control-plane/tenants/tenant.ts'
import { componentAlias } from '#control-plane/stacks/stack-for.ts'
import { networkName, volumeName } from '#control-plane/stacks/object-names.ts'
import type { ControlDatabase, Published, TenantRow } from './control-database.ts'
import type { Docker } from './docker.ts'
import type { Container } from './docker-objects.ts'
import type { RegionParts } from './region-parts.ts'

export interface World {
  docker: Docker
  database: ControlDatabase
  parts: RegionParts
  installation: string
  /** Id of the region's own stack. */
  regionStack: string
  /** Stacks that the database does not know, which must stay. */
  unknown: ReadonlySet<string>
  gatewayUrl: string
  runtimeUrls: readonly string[]
  subnets: number
}

const statuses: Record<Exclude<TenantRow['desired'], 'deleted'>, Status> = {
  active: 'ready',
  suspended: 'suspended',
  paused: 'paused',
  warm: 'warm',
  restoring: 'pending',
}

/** Returns a description of each deviation from the desired state. */
export function flawsOf(world: World): string[] {
  const { database } = world
  return [
    ...[...database.tenants.values()].flatMap((row) => flawsOfTenant(world, row)),
    ...remains(world),
    ...openOperations(world),
  ]
}

export function describeTenant({ id, isolation, desired, status, driftPolicy }: TenantRow): string {
  return `${id} (${isolation}, ${desired}, ${status}, ${driftPolicy})`
}

/**
 * Returns the deviations of the record of a tenant that is neither deleted nor failed.
 * @param excused types of conditions that may be false
 */
export function flawsOfRecord(row: TenantRow, excused: readonly Condition['type'][] = []): string[] {
  const flaws: string[] = []
  if (row.desired !== 'deleted' && row.status !== statuses[row.desired])
    flaws.push(`is not ${statuses[row.desired]}: ${row.reason ?? ''}`)
  if (row.observedGeneration !== row.generation)
    flaws.push(`was seen at generation ${row.observedGeneration} of ${row.generation}`)
  if (row.reason !== null) flaws.push(`has the reason "${row.reason}"`)
  for (const { type, status, message } of row.conditions)
    if (status === 'False' && !excused.includes(type)) flaws.push(`has the false condition ${type}: ${message}`)
  if (row.expiries.length > 0) flaws.push('has secrets that are to expire')
  if (row.desired === 'active' && row.databasePasswordDue) flaws.push('has an old database password')
  if (row.desired === 'active' && row.servicePasswordsDue) flaws.push("has old passwords of the services' logins")
  return flaws
}

function flawsOfTenant(world: World, row: TenantRow): string[] {
  const describe = (flaw: string) => `${describeTenant(row)}: ${flaw}`
  if (row.desired === 'deleted') return isRegionBroken(world) ? [] : [describe(`is still there: ${row.reason ?? ''}`)]
  if (row.status === 'failed')
    return causesOf(world, row).some((cause) => cause.test(row.reason ?? ''))
      ? []
      : [describe(`failed without a cause: ${row.reason ?? 'no reason'}`)]
  const flaws = [...flawsOfRecord(row), ...flawsOfRoute(world.parts.routes(), row)]
  const objectFlaws = row.isolation === 'schema-per-tenant' ? flawsOfShared(world, row) : flawsOfOwn(world, row)
  if (row.driftPolicy === 'repair' || row.isolation === 'schema-per-tenant') flaws.push(...objectFlaws)
  if (row.driftPolicy !== 'repair' && row.isolation !== 'schema-per-tenant' && row.desired === 'active') {
    const down = objectFlaws.filter((flaw) => /has (?:a \w+ that is (?!of|not)|0 containers)/.test(flaw))
    if (down.length > 0) flaws.push(`is reported ready, though it ${down.join(', ')}`)
  }
  if (row.driftPolicy === 'report' && row.isolation !== 'schema-per-tenant') {
    const isReported = row.conditions.some(({ type }) => type === 'Drift')
    if (objectFlaws.some((flaw) => !flaw.includes('not well')) && !isReported)
      flaws.push(`has no Drift condition, though it ${objectFlaws.join(', ')}`)
    if (objectFlaws.length === 0 && isReported && (row.desired === 'active' || row.desired === 'warm'))
      flaws.push('has a Drift condition without drift')
  }
  return flaws.map(describe)
}

const phases: Record<TenantRow['desired'], RoutePhase> = {
  deleted: 'deleted',
  active: 'ready',
  suspended: 'suspended',
  paused: 'paused',
  warm: 'pending',
  restoring: 'pending',
}

/** Checks the published route and a gateway's route. @param routes undefined if the gateway has received none */
export function flawsOfRoute(routes: ReadonlyMap<string, Published> | undefined, row: TenantRow): string[] {
  const wanted = phases[row.desired]
  if (row.routePhase !== wanted) return [`is published ${row.routePhase}`]
  const seen = routes?.get(row.id)?.phase
  return seen === undefined || seen === wanted ? [] : [`is ${seen} to the gateway`]
}

function flawsOfShared(world: World, row: TenantRow): string[] {
  // The controller does not check homes of a region that has lost its volumes.
  if (row.desired !== 'active' || isRegionBroken(world) || isHomeLost(world, row)) return []
  return world.runtimeUrls.every((url) => world.parts.isWell(url, row.id)) ? [] : ['is not well']
}

function flawsOfOwn(world: World, row: TenantRow): string[] {
  const { docker, parts, gatewayUrl } = world
  const containers = [...docker.containers.values()].filter(({ labels }) => labels?.stack === row.id)
  if (row.desired === 'suspended' || row.desired === 'paused') {
    return containers
      .filter((one) => docker.isRunning(one) || one.state === 'restarting')
      .map(({ name }) => `still runs ${name}`)
  }
  const flaws = (['postgres', 'runtime'] as const).flatMap((service) => {
    const all = containers.filter(({ labels }) => labels?.service === service)
    const [only] = all
    if (only === undefined || all.length > 1) return [`has ${all.length} containers of ${service}`]
    return flawsOfContainer(world, row, only, service)
  })
  if (parts.gateway()?.slots.get(networkName(row.id, 'net')) === undefined) flaws.push('has no gateway')
  const volumes = [...docker.volumes.values()].filter(
    ({ labels }) => labels?.stack === row.id && labels.service !== undefined,
  )
  if (volumes.length > 1) flaws.push(`has the secrets of ${volumes.length} runtimes`)
  if (flaws.length === 0 && !isHomeLost(world, row) && !parts.isWell(gatewayUrl, row.id)) flaws.push('is not well')
  return flaws
}

function flawsOfContainer(
  world: World,
  row: TenantRow,
  container: Container,
  service: 'postgres' | 'runtime',
): string[] {
  const { docker } = world
  const flaws: string[] = []
  const network = networkName(row.id, 'net')
  // Docker starts a Postgres on an emptied volume again and again. The check of homes, which the simulation does not have, reports it.
  const isEmptied = service === 'postgres' && container.state === 'restarting' && isHomeLost(world, row)
  const location = container.slots.get(network)
  if (container.state !== 'running' && !isEmptied) flaws.push(`has a ${service} that is ${container.state}`)
  if (
    location === undefined ||
    location.networkId !== docker.networks.get(network)?.id ||
    !location.aliases.includes(componentAlias(row.id, service))
  )
    flaws.push(`has its ${service} on no network`)
  if (container.resources.memoryBytes !== row.sizes[service].memoryBytes) flaws.push(`has a ${service} of another size`)
  if (container.spec.image !== row.images?.[service]) flaws.push(`has a ${service} of another image`)
  if (container.restartPolicy !== restartPolicy) flaws.push(`has a ${service} that is not started again`)
  return flaws
}

/** Reports whether the volumes that tenants of the region share are lost. */
function isRegionBroken({ docker, regionStack }: World): boolean {
  const volumes = ['data', 'files'].map((name) => docker.volumes.get(volumeName(regionStack, name)))
  return (
    volumes.some((volume) => volume === undefined || volume.labels === undefined) || volumes[0]?.isCluster === false
  )
}

/** Reports whether a tenant's volume was emptied. The controller does not check homes of settled tenants. */
function isHomeLost({ docker, regionStack }: World, row: TenantRow): boolean {
  const cluster = docker.volumes.get(volumeName(row.isolation === 'schema-per-tenant' ? regionStack : row.id, 'data'))
  return row.hadHome && cluster?.homes.has(row.id) === false
}

/** Returns the reasons for which a tenant may have failed, from the state of the objects. */
function causesOf(world: World, row: TenantRow): RegExp[] {
  const { docker, database, installation, regionStack, subnets, unknown } = world
  const causes: RegExp[] = isHomeLost(world, row) ? [/The home and its data are gone/, /volume "data" is empty/] : []
  const isForeign = (object: { labels: { installation: string } | undefined } | undefined) =>
    object !== undefined && object.labels?.installation !== installation
  if (row.isolation === 'schema-per-tenant')
    return isRegionBroken(world) || isForeign(docker.networks.get(networkName(regionStack, 'net'))) ? [/./] : causes
  // Drift that the policy does not repair is still reported.
  if (row.driftPolicy !== 'repair' && flawsOfOwn(world, row).length > 0) causes.push(/The drift policy/)
  for (const name of ['data', 'files']) {
    const volume = docker.volumes.get(volumeName(row.id, name))
    if (isForeign(volume)) causes.push(/exists that does not belong to Tenantry/)
    // A foreign volume does not replace ours.
    if (volume === undefined || isForeign(volume)) causes.push(/volume .* are gone/)
  }
  if (isForeign(docker.networks.get(networkName(row.id, 'net')))) causes.push(/exists that does not belong to Tenantry/)
  const conflicts =
    docker.hiddenSubnets.size +
    [...docker.networks.values()].filter((network) => isForeign(network) && network.name.startsWith('foreign-')).length
  if (database.subnets.size + unknown.size + conflicts >= subnets)
    causes.push(/the subnet overlaps/, /subnets of the region are in use/)
  return causes
}

/** Returns the objects, subnets and homes of tenants that no longer exist. */
function remains({ docker, database, installation, regionStack, unknown }: World): string[] {
  const known = new Set([...database.tenants.keys(), regionStack, ...unknown])
  const objects = [...docker.containers.values(), ...docker.networks.values(), ...docker.volumes.values()]
  const onHost = objects
    .filter(({ labels }) => labels?.installation === installation && !known.has(labels.stack))
    .map(({ name }) => `${name} remains`)
  const subnets = [...database.subnets.keys()]
    .filter((stack) => !known.has(stack))
    .map((stack) => `the subnet of ${stack} remains`)
  const homes = [...docker.volumes.values()].flatMap(({ name, homes }) =>
    [...homes.keys()].filter((id) => !database.tenants.has(id)).map((id) => `the home of ${id} remains in ${name}`),
  )
  return [...onHost, ...subnets, ...homes]
}

function isExcused(world: World, row: TenantRow | undefined): boolean {
  return row?.status === 'failed' || (row?.desired === 'deleted' && isRegionBroken(world))
}

function openOperations(world: World): string[] {
  const { database } = world
  return [...database.operations.values()]
    .filter((operation) => database.isOpen(operation) && !isExcused(world, database.tenants.get(operation.tenantId)))
    .map(({ kind, tenantId }) => `the operation ${kind} of ${tenantId} is open`)
}
