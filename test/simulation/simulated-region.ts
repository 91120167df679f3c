// The real region of one control plane, on the simulated host and with homes in the simulated volumes.
import { createContainerEngine } from '#control-plane/engines/container-engine.ts'
import { onlyHost } from '#control-plane/engines/hosts.ts'
import { HomeDatabases } from '#control-plane/homes/home-databases.ts'
import type { Snapshot } from '#control-plane/reconcile/reconcile-store.ts'
import { createRegion, isDedicated, type Region } from '#control-plane/reconcile/region.ts'
import type { RegionConfig } from '#control-plane/regions/region-config.ts'
import type { Chance } from './chance.ts'
import type { ControlPlane } from './control-plane.ts'
import { spoilHost, spoilStack, type Defects } from './defects.ts'
import type { Docker } from './docker.ts'
import { clusterOf } from './docker-objects.ts'
import { homeBy, runInside } from './home-programs.ts'
import type { Scheduler } from './scheduler.ts'
import { createSimulatedHost } from './simulated-host.ts'
import type { Troubles } from './troubles.ts'

export interface SimulatedRegionOptions {
  config: RegionConfig
  installation: string
  /** Number of subnets of the region. */
  subnets: number
  docker: Docker
  chance: Chance
  scheduler: Scheduler
  troubles: Troubles
  defects: Defects
}

export function createSimulatedRegion(options: SimulatedRegionOptions, caller: ControlPlane): Region {
  const { config, installation, subnets, docker, chance, scheduler, troubles, defects } = options
  const host = createSimulatedHost({
    docker,
    caller,
    chance,
    scheduler,
    installation,
    eventFaults: () => troubles.events(),
    checksLabels: defects.ignoresLabels !== true,
    run: (container, command, _input, actor) => ({
      code: runInside(docker, container, docker.volumes.get(clusterOf(container) ?? ''), command, actor),
      stdout: '',
    }),
  })
  const engine = createContainerEngine({
    name: 'docker',
    installation,
    hosts: onlyHost(spoilHost(defects, host)),
    sleep: (milliseconds, signal) => caller.clock.sleep(milliseconds, signal),
  })
  // No connection pool is opened, because commands below replace all work in homes.
  const homes = new HomeDatabases(config.postgres_url, [])
  const region = createRegion({
    config,
    engine,
    homes,
    migrations: [],
    maxObjects: 2_000,
    internalToken: 'internal',
    clock: caller.clock,
  })

  const inSharedPostgres = (command: readonly string[]) =>
    caller.call(
      `shared postgres: ${command.join(' ')}`,
      (actor) => {
        const postgres = [...docker.containers.values()].find(
          ({ labels }) => labels?.stack === region.stackId && labels.service === 'postgres',
        )
        if (postgres === undefined || !docker.responds(postgres)) throw new Error('connect ECONNREFUSED')
        return runInside(docker, postgres, docker.volumes.get(clusterOf(postgres) ?? ''), command, actor)
      },
      { timeout: 10_000, takes: 20, arrivesLate: false, failure: () => new Error('connect ETIMEDOUT') },
    )
  const inOwnPostgres = (tenantId: string) => async (command: readonly string[]) => {
    const { code } = await engine.exec(tenantId, 'postgres', command, {
      input: '',
      signal: caller.clock.timeout(40_000),
    })
    return code
  }
  return {
    ...region,
    subnets,
    home: (tenant: Snapshot) => homeBy(isDedicated(tenant) ? inOwnPostgres(tenant.id) : inSharedPostgres),
    stack: async (tenant, signal) => spoilStack(defects, await region.stack(tenant, signal)),
  }
}
