// A region for the reconciler: its engine, its shared Postgres, its runtimes and gateways.
import type { Clock } from '../platform/clock.ts'
import { type Engine, EngineError, type EngineErrorCode } from '../engines/index.ts'
import { createDedicatedHome, type HomeDatabases, type HomeMigration, type HomeServer } from '../homes/index.ts'
import {
  type DockerSettings,
  gatewayContainerOf,
  regionStack,
  regionStackId,
  type RegionStackInput,
  type Stack,
  stackFor,
  parseRange,
  subnetCount,
  subnetNumber,
  tenantSubnet,
} from '../stacks/index.ts'
import type { RegionConfig } from '../regions/index.ts'
import type { Snapshot } from './reconcile-store.ts'

/** A region for the reconciler: the addresses of its parts, and the stacks that should run there. */
export interface Region {
  config: RegionConfig
  /** Engine of the region; undefined if its parts are started by other means. */
  engine: Engine | undefined
  /** Returns the URLs for a tenant's health, usage and data. */
  runtimeUrls(tenant: Pick<Snapshot, 'isolation'>): readonly string[]
  /** The server of the tenant's home: the region's shared one, or the tenant's own. */
  home(tenant: Snapshot): HomeServer
  /**
   * Returns the specified stack of the tenant. @throws EngineError if it cannot be determined, for example for a
   * missing image
   */
  stack(tenant: Snapshot, signal: AbortSignal): Promise<Stack>
  /** Digests of the images that a new tenant gets. */
  images(signal: AbortSignal): Promise<{ postgres: string; runtime: string }>
  /** Number of subnets in the region's range. */ subnets: number
  /** Returns the subnet numbers that networks of Tenantry use on the engine, of any installation's stack. */
  subnetsInUse(signal: AbortSignal): Promise<number[]>
  /** ID of the region's own stack. */
  stackId: string
  /** Returns the specified stack of the region's shared services; undefined if they are started by other means. */
  ownStack(hasHomes: boolean, signal: AbortSignal): Promise<Stack | undefined>
  /** Waits until the tenant's own Postgres accepts statements. */
  awaitDatabase(tenant: Snapshot, signal: AbortSignal): Promise<void>
}

/** Options of a region; `engine` is undefined if its parts are started by other means. */
export interface RegionOptions {
  config: RegionConfig
  engine: Engine | undefined
  homes: HomeDatabases
  migrations: HomeMigration[]
  internalToken: string
  clock: Clock
}

const execMilliseconds = 40_000
const digestMilliseconds = 5_000
/**
 * Command that polls inside the container: one call instead of many, because a process in a container costs more than a
 * poll of a socket.
 */
const untilReady = [
  'sh',
  '-c',
  'for i in $(seq 600); do pg_isready -q -h /run/postgresql -U postgres && exit 0; sleep 0.05; done; exit 1',
]
const pids = 256

/** Reasons in Postgres' log why it does not start. */
const logReasons: readonly { line: RegExp; code: EngineErrorCode; message: string }[] = [
  {
    line: /no space left on device/i,
    code: 'DISK_FULL',
    message: "The disk of the tenant's Postgres is full.",
  },
  // Line of the entrypoint (images/postgres/entrypoint.sh).
  {
    line: /holds no data directory/,
    code: 'VOLUME_MISSING',
    message: 'The volume "data" is empty, and its data is gone. No empty database is started.',
  },
]

/** Whether a tenant has a database and a runtime of its own, rather than the region's shared ones. */
export function isDedicated({ isolation }: Pick<Snapshot, 'isolation'>): boolean {
  return isolation !== 'schema-per-tenant'
}

/** Creates a region from the operator's configuration. @throws RangeError for an invalid range of networks */
export function createRegion({ config, engine, homes, migrations, internalToken, clock }: RegionOptions): Region {
  const { docker } = config
  const range = docker === undefined ? undefined : parseRange(docker.network_range)

  const requireEngine = (): Engine => {
    if (engine === undefined)
      throw new EngineError('ENGINE_FAILED', `The region "${config.id}" has no engine for services.`)
    return engine
  }

  const settings = (): DockerSettings => {
    if (docker === undefined)
      throw new EngineError('ENGINE_FAILED', `The region "${config.id}" has no engine for services.`)
    return docker
  }

  const cachedDigests = new Map<string, { digest: string; until: number }>()
  /** Returns an image's digest. It is read for every tenant of a sweep, so it is cached for a few seconds. */
  const digestOf = async (image: string, signal: AbortSignal): Promise<string> => {
    const now = clock.now().getTime()
    const last = cachedDigests.get(image)
    if (last !== undefined && last.until >= now) return last.digest
    const { id: digest } = await requireEngine().image(image, signal)
    cachedDigests.set(image, { digest, until: now + digestMilliseconds })
    return digest
  }
  /** Returns an image's digest, or the last known one if the name was removed, so that running services continue. */
  const currentDigest = (image: string, signal: AbortSignal): Promise<string> =>
    digestOf(image, signal).catch((error: unknown) => {
      const last = cachedDigests.get(image)
      if (last === undefined || !(error instanceof EngineError) || error.code !== 'IMAGE_MISSING') throw error
      return last.digest
    })

  const regionInput = async (hasHomes: boolean, signal: AbortSignal): Promise<RegionStackInput> => {
    const { postgres, runtime, gateway } = settings().images
    const digest = (image: string) => currentDigest(image, signal)
    const [a, b, c] = await Promise.all([
      digest(postgres),
      digest(runtime),
      gateway === undefined ? undefined : digest(gateway),
    ])
    const images = { postgres: a, runtime: b, gateway: c }
    return {
      region: config.id,
      installation: requireEngine().installation,
      domain: config.domain,
      docker: settings(),
      images,
      internalToken,
      superuserPassword: config.superuserPassword,
      hasHomes,
    }
  }

  /** Reads why Postgres restarts repeatedly, which only its log reports. */
  const reasonInLog = async (stackId: string, signal: AbortSignal): Promise<EngineError | undefined> => {
    let reason: EngineError | undefined
    for await (const { text } of requireEngine().logs(stackId, 'postgres', { follow: false, tail: 20 }, signal)) {
      const found = logReasons.find(({ line }) => line.test(text))
      if (found !== undefined) reason = new EngineError(found.code, found.message)
    }
    return reason
  }

  const isRunning = ({ desired }: Snapshot) => desired === 'active' || desired === 'warm'

  return {
    config,
    engine,
    stackId: regionStackId(config.id, engine?.installation ?? ''),
    subnets: range === undefined ? 0 : subnetCount(range),
    runtimeUrls: (tenant) => (isDedicated(tenant) ? config.gateway_internal_urls : config.runtime_urls),

    home(tenant) {
      if (!isDedicated(tenant)) return homes.in(tenant.database ?? '')
      const run = (command: readonly string[], input: string) =>
        requireEngine().exec(tenant.id, 'postgres', command, { input, signal: clock.timeout(execMilliseconds) })
      return createDedicatedHome(run, migrations)
    },

    async stack(tenant, signal) {
      const { id, isolation, sizes, restarts, images, subnet } = tenant
      const cidr = subnet === undefined || range === undefined ? undefined : tenantSubnet(range, subnet)
      const gatewayContainer = isDedicated(tenant) ? gatewayContainerOf(await regionInput(true, signal)) : ''
      return stackFor(
        {
          id,
          isolation,
          running: isRunning(tenant),
          hasHome: tenant.homeVersion !== undefined,
          resources: withPids(sizes),
          restarts,
          images,
          subnet: cidr,
        },
        { gatewayContainer, internalToken },
      )
    },

    async images(signal) {
      const { images } = settings()
      const [postgres, runtime] = await Promise.all([
        digestOf(images.postgres, signal),
        digestOf(images.runtime, signal),
      ])
      return { postgres, runtime }
    },

    async subnetsInUse(signal) {
      if (range === undefined) return []
      const { networks } = await requireEngine().observe(undefined, signal)
      return networks.flatMap(({ subnet }) => subnetNumber(range, subnet) ?? [])
    },

    ownStack: async (hasHomes, signal) =>
      docker === undefined ? undefined : regionStack(await regionInput(hasHomes, signal)),

    async awaitDatabase(tenant, signal) {
      const bounded = AbortSignal.any([signal, clock.timeout(execMilliseconds)])
      try {
        const { code } = await requireEngine().exec(tenant.id, 'postgres', untilReady, { signal: bounded })
        if (code !== 0) throw new EngineError('UNHEALTHY', "The tenant's Postgres does not accept statements.")
      } catch (cause) {
        throw (await reasonInLog(tenant.id, bounded).catch(() => undefined)) ?? cause
      }
    },
  }
}

function withPids(sizes: Snapshot['sizes']) {
  return { postgres: { ...sizes.postgres, pids }, runtime: { ...sizes.runtime, pids } }
}
