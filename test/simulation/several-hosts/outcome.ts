// Checks the state of a region on several hosts after all faults have ended and enough time has passed. It reads all objects and does
// not use the reconciler's own plan.
import { restartPolicy } from '#control-plane/engines/container-host.ts'
import type { RegionConfig } from '#control-plane/regions/region-config.ts'
import { clusterMembers } from '#control-plane/stacks/cluster-services.ts'
import { networkName } from '#control-plane/stacks/object-names.ts'
import { serviceNames } from '#control-plane/stacks/stack-for.ts'
import type { ControlDatabase, TenantRow } from '../control-database.ts'
import type { Container } from '../docker-objects.ts'
import { describeTenant, flawsOfRecord, flawsOfRoute } from '../outcome.ts'
import type { Etcd } from './etcd.ts'
import type { Machines, SimulatedMachine } from './hosts.ts'
import type { HostsParts } from './parts.ts'
import type { Patroni } from './patroni.ts'

export interface HostsWorld {
  machines: Machines
  etcd: Etcd
  patroni: Patroni
  database: ControlDatabase
  parts: HostsParts
  config: Pick<RegionConfig, 'gateway_internal_urls' | 'runtime_urls'>
  installation: string
  regionStack: string
}

/** Number of services on different hosts that a cluster needs of each kind. */
const members = 3

/** Returns a description of each deviation from the desired state. */
export function flawsOfHosts(world: HostsWorld): string[] {
  const { database } = world
  const rows = [...database.tenants.values()]
  return [
    ...rows.flatMap((row) => flawsOfTenant(world, row).map((flaw) => `${describeTenant(row)}: ${flaw}`)),
    ...flawsOfCluster(world, world.regionStack).map((flaw) => `the region ${flaw}`),
    ...flawsOfEtcd(world),
    ...remains(world),
    ...[...database.operations.values()]
      .filter((operation) => database.isOpen(operation))
      .map(({ kind, tenantId }) => `the operation ${kind} of ${tenantId} is open`),
  ]
}

function flawsOfTenant(world: HostsWorld, row: TenantRow): string[] {
  if (row.desired === 'deleted') return [`is still there: ${row.reason ?? ''}`]
  const { parts, config } = world
  // Drift that the policy does not repair is still reported.
  const isLeft = row.driftPolicy !== 'repair' && row.isolation !== 'schema-per-tenant'
  if (isLeft && row.status === 'failed')
    return /The drift policy/.test(row.reason ?? '') ? [] : [`failed: ${row.reason}`]
  // A stopped cluster does not move, also if hosts are there again.
  const isCrowded = activeHosts(world).length < members || row.desired === 'suspended' || row.desired === 'paused'
  const flaws = [
    ...flawsOfRecord(row, isCrowded ? ['Spread'] : []),
    ...config.gateway_internal_urls.flatMap((url) => flawsOfRoute(parts.routes(url), row)),
  ]
  const isShared = row.isolation === 'schema-per-tenant'
  const urls = isShared ? config.runtime_urls : config.gateway_internal_urls
  const ill = row.desired === 'active' ? urls.filter((url) => !parts.isWell(url, row.id)) : []
  flaws.push(...ill.map((url) => `is not well at ${url}`))
  if (isShared || isLeft) return flaws
  return [...flaws, ...flawsOfServices(world, row)]
}

function flawsOfServices(world: HostsWorld, row: TenantRow): string[] {
  const all = located(world, row.id)
  if (row.desired !== 'active' && row.desired !== 'warm')
    return all
      .filter(({ host, container }) => host.docker.isRunning(container) || container.state === 'restarting')
      .map(({ container }) => `still runs ${container.name}`)
  const flaws = serviceNames(row.isolation).flatMap((service) => {
    const found = all.filter(({ container }) => container.labels?.service === service)
    const [only] = found
    if (only === undefined || found.length > 1) return [`has ${found.length} containers of ${service}`]
    return flawsOfContainer(world, row, service, only)
  })
  if (row.isolation !== 'cluster-per-tenant') return flaws
  flaws.push(...flawsOfCluster(world, row.id))
  const own = clusterMembers.flatMap((service) => row.placement[service] ?? [])
  const spread = Math.min(members, activeHosts(world).length)
  if (new Set(own).size < spread) flaws.push(`has its members on ${own.join(', ')}`)
  return flaws
}

/** Returns the hosts that receive services. */
function activeHosts({ machines, database }: HostsWorld): SimulatedMachine[] {
  return machines.all.filter(({ id }) => !database.hostStates.has(id))
}

function located({ machines }: HostsWorld, stack: string): { host: SimulatedMachine; container: Container }[] {
  return machines.all.flatMap((host) =>
    [...host.docker.containers.values()]
      .filter(({ labels }) => labels?.stack === stack)
      .map((container) => ({ host, container })),
  )
}

function flawsOfContainer(
  { machines, database }: HostsWorld,
  row: TenantRow,
  service: string,
  { host, container }: { host: SimulatedMachine; container: Container },
): string[] {
  const flaws: string[] = []
  const component = service.startsWith('runtime') ? 'runtime' : 'postgres'
  if (row.placement[service] !== host.id)
    flaws.push(`has ${service} on ${host.id} instead of ${row.placement[service]}`)
  if (row.isolation === 'cluster-per-tenant' && database.hostStates.has(host.id))
    flaws.push(`has ${service} on ${host.id}, which is ${database.hostStates.get(host.id)}`)
  if (container.state !== 'running') flaws.push(`has ${service} that is ${container.state}`)
  if (!machines.isOn(container, networkName(row.id, 'net'))) flaws.push(`has its ${service} on no network`)
  if (container.spec.image !== row.images?.[component]) flaws.push(`has ${service} of another image`)
  if (container.restartPolicy !== restartPolicy) flaws.push(`has ${service} that is not started again`)
  return flaws
}

/** Checks that a cluster has one copy of its data for each member, and that all replicas confirm commits. */
function flawsOfCluster(world: HostsWorld, stack: string): string[] {
  const { machines, patroni } = world
  const own = machines.responding(stack).flatMap(({ container }) => patroni.memberIn(container) ?? [])
  const primary = patroni.primaryOf(stack)
  if (primary === undefined) return ['has no primary']
  const silent = own.filter((member) => member.container !== primary.container && !patroni.isConfirming(member))
  const copies = machines.all.flatMap(({ id, docker }) =>
    [...docker.volumes.values()]
      .filter(({ name, labels }) => labels?.stack === stack && /-data-\d$/.test(name))
      .map(({ name }) => `${name} on ${id}`),
  )
  return [
    ...(own.length === members ? [] : [`has ${own.length} members`]),
    ...silent.map(({ identity }) => `has ${identity}, which does not confirm commits`),
    ...(copies.length === members ? [] : [`has the copies ${copies.join(', ')}`]),
  ]
}

/** Checks that all members of etcd are in its cluster, and have a majority. */
function flawsOfEtcd({ etcd }: HostsWorld): string[] {
  const serving = etcd.members().filter((one) => etcd.hasQuorum(one))
  return serving.length === members ? [] : [`etcd has ${serving.length} members`]
}

/** Returns the objects, subnets and homes of tenants that no longer exist. */
function remains({ machines, database, installation, regionStack }: HostsWorld): string[] {
  const isKnown = (stack: string) => stack === regionStack || database.tenants.has(stack)
  const objects = machines.all.flatMap(({ docker }) => [...docker.containers.values(), ...docker.volumes.values()])
  const homes = machines.all.flatMap(({ docker }) =>
    [...docker.volumes.values()].flatMap(({ name, homes: own }) =>
      [...own.keys()].filter((id) => !database.tenants.has(id)).map((id) => `the home of ${id} remains in ${name}`),
    ),
  )
  return [
    ...[...objects, ...machines.networks.values()]
      .filter(({ labels }) => labels?.installation === installation && !isKnown(labels.stack))
      .map(({ name }) => `${name} remains`),
    ...[...database.subnets.keys()].filter((stack) => !isKnown(stack)).map((stack) => `the subnet of ${stack} remains`),
    ...homes,
  ]
}
