// The real region of one control plane on the simulated hosts, with homes in the simulated volumes.
import { createContainerEngine } from '#control-plane/engines/container-engine.ts'
import { swarmHosts } from '#control-plane/engines/swarm/swarm-hosts.ts'
import { HomeDatabases } from '#control-plane/homes/home-databases.ts'
import type { Snapshot } from '#control-plane/reconcile/reconcile-store.ts'
import { createRegion, isDedicated, type Region } from '#control-plane/reconcile/region.ts'
import { createRegionStacks, type RegionStacks } from '#control-plane/reconcile/region-stacks.ts'
import { readRegions, type RegionConfig } from '#control-plane/regions/region-config.ts'
import type { Chance } from '../chance.ts'
import type { ControlPlane } from '../control-plane.ts'
import { homeBy } from '../home-programs.ts'
import type { Scheduler } from '../scheduler.ts'
import { createSimulatedHost } from '../simulated-host.ts'
import type { Troubles } from '../troubles.ts'
import { spoilEngine, type HostDefects } from './defects.ts'
import { sharedRouter, type Machines } from './hosts.ts'
import type { Patroni } from './patroni.ts'
import type { ClusterPrograms } from './programs.ts'

export interface HostsRegionOptions extends ConfiguredRegion {
  installation: string
  regionStack: string
  machines: Machines
  patroni: Patroni
  programs: ClusterPrograms
  chance: Chance
  scheduler: Scheduler
  troubles: Troubles
  defects: HostDefects
}

const internalToken = 'internal'
export const range = '10.98.0.0/21'

/** A region as all its control planes know it. */
export interface ConfiguredRegion {
  config: RegionConfig
  stacks: RegionStacks
}

const configured = new Map<string, ConfiguredRegion>()

/** Returns a region on hosts. All runs with the same hosts have its stacks in common. @param hosts their IDs */
export function configure(regionId: string, hosts: readonly string[]): ConfiguredRegion {
  const key = hosts.join(' ')
  const known = configured.get(key)
  if (known !== undefined) return known
  const config = configurationOf(regionId, hosts)
  const region = { config, stacks: createRegionStacks(config, internalToken) }
  configured.set(key, region)
  return region
}

function configurationOf(regionId: string, hosts: readonly string[]): RegionConfig {
  const swarm = {
    hosts: hosts.map((id, at) => ({
      id,
      host: 'unix:///simulated',
      address: `10.97.0.${at + 1}`,
      zone: `zone-${at % 3}`,
    })),
    network_range: range,
    images: { postgres: 'postgres:1', runtime: 'runtime:1', gateway: 'gateway:1' },
    clusters: { member_image: 'member:1', etcd_image: 'etcd:1' },
    control_url: 'http://control:4400',
    control_containers: [{ host: hosts[0], container: controlContainer }],
    gateway: { port: 4401, postgres_port: 4403 },
    egress: {},
    storage: {
      backend: 's3',
      // The content of the file does not matter.
      s3: {
        endpoint: 'http://s3',
        bucket: 'files',
        access_key_id: 'key',
        secret_access_key_file: import.meta.filename,
      },
    },
  }
  const region = { id: regionId, engine: 'swarm', domain: 'localhost', gateway_url: 'http://127.0.0.1:4401', swarm }
  const [config] = readRegions(JSON.stringify([region]), Buffer.alloc(32))
  if (config === undefined) throw new Error('the region is not there')
  return { ...config, etcd: { authority: 'authority', certificate: 'certificate', privateKey: 'key', seed: 'seed' } }
}

/** Name of the container of a control plane, which the region's network gets. */
export const controlContainer = 'control-plane'

export function createHostsRegion(options: HostsRegionOptions, caller: ControlPlane): Region {
  const { config, stacks, installation, regionStack, machines, patroni, programs, chance, scheduler } = options
  const { troubles, defects } = options
  const sleep = (milliseconds: number, signal: AbortSignal) => caller.clock.sleep(milliseconds, signal)
  const hosts = machines.all.map((host) => {
    const { id, docker } = host
    const simulated = createSimulatedHost({
      docker,
      caller,
      chance,
      scheduler,
      installation,
      eventFaults: () => troubles.events(),
      checksLabels: true,
      run: (container, command, input, actor) => programs.run(host, container, command, input, actor),
      reportsAddresses: defects.keepsSharedAddresses !== true,
      isManager: () => machines.hasMajority(host),
    })
    return [id, simulated] as const
  })
  const now = () => caller.clock.now().getTime()
  const whole = createContainerEngine({
    name: 'swarm',
    installation,
    hosts: swarmHosts({ hosts: new Map(hosts), now, sleep }),
    sleep,
  })
  const engine = spoilEngine(defects, whole)
  const region = createRegion({
    config,
    engine,
    // No connection pool is opened, because commands below replace all work in homes.
    homes: new HomeDatabases(config.postgres_url, []),
    migrations: [],
    maxObjects: 2_000,
    internalToken,
    stacks,
    clock: caller.clock,
  })

  const inSharedCluster = (command: readonly string[]) =>
    caller.call(
      `shared cluster: ${command.join(' ')}`,
      (actor) => {
        const primary = patroni.primaryOf(regionStack)
        if (primary === undefined || sharedRouter(machines, regionStack, programs.isReady) === undefined)
          throw new Error('connect ECONNREFUSED')
        return programs.homeWork(primary, command, actor).code
      },
      { timeout: 10_000, takes: 20, arrivesLate: false, failure: () => new Error('connect ETIMEDOUT') },
    )
  const inOwnPostgres = (tenant: Pick<Snapshot, 'id' | 'isolation'>) => async (command: readonly string[]) => {
    const signal = caller.clock.timeout(40_000)
    const service = await region.primaryService(tenant, signal)
    return (await engine.exec(tenant.id, service, command, { input: '', signal })).code
  }
  return {
    ...region,
    ...(defects.replacesNoMember === true ? { replaceEtcdMember: () => Promise.resolve() } : {}),
    home: (tenant) => homeBy(isDedicated(tenant) ? inOwnPostgres(tenant) : inSharedCluster),
  }
}
