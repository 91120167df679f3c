// Tenant → stack. One branch an isolation model. Pure.
import { tenantToken } from '@tenantry/contract'
import type { Isolation } from './isolation.ts'
import { SecretText } from './secret-text.ts'
import type { Resources, Stack } from './stack.ts'
import { nodeService, ports, postgresService } from './tenant-services.ts'

/** What each component of a tenant may take. */
interface ComponentResources {
  postgres: Resources
  runtime: Resources
}

/** What a stack is made from: all that the control plane knows of the tenant and of where it lives. */
export interface StackInput {
  id: string
  isolation: Isolation
  /** Suspended and paused tenants keep their data, and nothing runs. */
  running: boolean
  /** There is a home in the volumes: they may not be made anew. */
  hasHome: boolean
  resources: ComponentResources
  restarts: number
  /** Digests; undefined for tenants without services. */
  images: { postgres: string; runtime: string } | undefined
  subnet: string | undefined
}

interface StackSurroundings {
  /** Name of the gateway's container. */
  gatewayContainer: string
  internalToken: string
}

/**
 * A schema-per-tenant home needs no services of its own: the region's shared Postgres and runtimes serve it.
 * @throws RangeError for a model that has no stack yet; the API refuses it before it gets here
 */
export function stackFor(tenant: StackInput, surroundings: StackSurroundings): Stack {
  switch (tenant.isolation) {
    case 'schema-per-tenant':
      return { id: tenant.id, state: 'running', networks: [], volumes: [], services: [] }
    case 'database-per-tenant':
      return dedicatedStack(tenant, surroundings)
    case 'cluster-per-tenant':
      throw new RangeError(`no engine runs ${tenant.isolation}`)
  }
}

/** Sessions of a database of the tenant's own: its runtime, its SQL clients, and what the control plane needs. */
const connections = 80
const reservedConnections = 54
const runtimeConnections = 40

/** Names on the tenant's network; the gateway is on many, so they carry the tenant's id. */
export const componentAlias = (tenantId: string, component: 'postgres' | 'runtime'): string =>
  `${tenantId}-${component}`

function dedicatedStack(tenant: StackInput, { gatewayContainer, internalToken }: StackSurroundings): Stack {
  const { id, images, subnet, resources, restarts, hasHome } = tenant
  if (images === undefined || subnet === undefined) throw new RangeError(`${id} has no images or no subnet yet`)
  const attachment = (component: 'postgres' | 'runtime') => ({
    network: 'net',
    aliases: [componentAlias(id, component)],
  })
  return {
    id,
    state: tenant.running ? 'running' : 'stopped',
    networks: [
      {
        name: 'net',
        subnet,
        internal: true,
        hostAddress: false,
        attachedContainers: [{ container: gatewayContainer, alias: 'gateway' }],
      },
    ],
    volumes: [
      { name: 'data', mustExist: hasHome, isGuarded: true },
      { name: 'files', mustExist: hasHome, isGuarded: false },
    ],
    services: [
      postgresService({
        image: images.postgres,
        network: attachment('postgres'),
        resources: resources.postgres,
        connections,
        reservedConnections,
        restarts,
      }),
      nodeService({
        name: 'runtime',
        image: images.runtime,
        livePort: ports.runtime,
        networks: [attachment('runtime')],
        resources: resources.runtime,
        environment: {
          TENANTRY_PORT: String(ports.runtime),
          TENANTRY_CONTROL_URL: `http://gateway:${ports.gatewayInternal}`,
          TENANTRY_MAX_CONNECTIONS: String(runtimeConnections),
        },
        internalToken: new SecretText(tenantToken(internalToken, id)),
        volume: 'files',
        replace: 'start-first',
        restarts,
      }),
    ],
  }
}
