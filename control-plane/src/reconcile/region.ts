// A region as the reconciler works in it: its engine, its shared Postgres, its runtimes and gateways.
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

/** One region as the reconciler works in it: where its parts are, and what should run there. */
export interface Region {
  config: RegionConfig
  /** Undefined where somebody else started the parts. */
  engine: Engine | undefined
  /** Whom to ask for a tenant's health, usage and data. */
  runtimeUrls(tenant: Pick<Snapshot, 'isolation'>): readonly string[]
  /** The server of the tenant's home: the region's shared one, or the tenant's own. */
  home(tenant: Snapshot): HomeServer
  /** What should run for the tenant. @throws EngineError when it can't be said, e.g. for an image that is missing */
  stack(tenant: Snapshot, signal: AbortSignal): Promise<Stack>
  /** Digests of the images that a new tenant gets. */
  images(signal: AbortSignal): Promise<{ postgres: string; runtime: string }>
  subnets: number
  /** Numbers of those that networks of ours have on the engine, whosever they are. */
  subnetsInUse(signal: AbortSignal): Promise<number[]>
  /** Of its own stack. */
  stackId: string
  /** What should run for all of them; undefined where somebody else started the parts. */
  ownStack(hasHomes: boolean, signal: AbortSignal): Promise<Stack | undefined>
  /** Returns when the tenant's own Postgres takes statements. */
  awaitDatabase(tenant: Snapshot, signal: AbortSignal): Promise<void>
}

/** What a region is made from; `engine` is undefined where somebody else starts the parts. */
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
/** One call instead of many: a process in a container costs more than a look at a socket. */
const untilReady = [
  'sh',
  '-c',
  'for i in $(seq 600); do pg_isready -q -h /run/postgresql -U postgres && exit 0; sleep 0.05; done; exit 1',
]
const pids = 256

/** Why Postgres does not start, as its log says. */
const logReasons: readonly { line: RegExp; code: EngineErrorCode; message: string }[] = [
  {
    line: /no space left on device/i,
    code: 'DISK_FULL',
    message: "the disk that the tenant's Postgres writes to is full",
  },
  // Of the entrypoint (images/postgres/entrypoint.sh).
  {
    line: /holds no data directory/,
    code: 'VOLUME_MISSING',
    message: 'the volume "data" is empty, and what it held is gone; no empty database is started',
  },
]

/** Whether a tenant has a database and a runtime of its own, rather than the region's shared ones. */
export function isDedicated({ isolation }: Pick<Snapshot, 'isolation'>): boolean {
  return isolation !== 'schema-per-tenant'
}

/** Makes a region of the operator's configuration. @throws RangeError for a range of networks that can't be */
export function createRegion({ config, engine, homes, migrations, internalToken, clock }: RegionOptions): Region {
  const { docker } = config
  const range = docker === undefined ? undefined : parseRange(docker.network_range)

  const needed = (): Engine => {
    if (engine === undefined)
      throw new EngineError('ENGINE_FAILED', `the region ${config.id} has no engine for services`)
    return engine
  }

  const settings = (): DockerSettings => {
    if (docker === undefined)
      throw new EngineError('ENGINE_FAILED', `the region ${config.id} has no engine for services`)
    return docker
  }

  const known = new Map<string, { digest: string; until: number }>()
  /** Asked for every tenant of a sweep, so the last answer is good for a few seconds. */
  const digestOf = async (image: string, signal: AbortSignal): Promise<string> => {
    const now = clock.now().getTime()
    const last = known.get(image)
    if (last !== undefined && last.until >= now) return last.digest
    const { id: digest } = await needed().image(image, signal)
    known.set(image, { digest, until: now + digestMilliseconds })
    return digest
  }
  /** For what stands already, a name that was taken away means what it meant: nobody is left alone for it. */
  const currentDigest = (image: string, signal: AbortSignal): Promise<string> =>
    digestOf(image, signal).catch((error: unknown) => {
      const last = known.get(image)
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
      installation: needed().installation,
      domain: config.domain,
      docker: settings(),
      images,
      internalToken,
      superuserPassword: config.superuserPassword,
      hasHomes,
    }
  }

  /** Postgres ends and begins again and again then: the reason is in its log alone. */
  const reasonInLog = async (stackId: string, signal: AbortSignal): Promise<EngineError | undefined> => {
    let reason: EngineError | undefined
    for await (const { text } of needed().logs(stackId, 'postgres', { follow: false, tail: 20 }, signal)) {
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
        needed().exec(tenant.id, 'postgres', command, { input, signal: clock.timeout(execMilliseconds) })
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
      const { networks } = await needed().observe(undefined, signal)
      return networks.flatMap(({ subnet }) => subnetNumber(range, subnet) ?? [])
    },

    ownStack: async (hasHomes, signal) =>
      docker === undefined ? undefined : regionStack(await regionInput(hasHomes, signal)),

    async awaitDatabase(tenant, signal) {
      const bounded = AbortSignal.any([signal, clock.timeout(execMilliseconds)])
      try {
        const { code } = await needed().exec(tenant.id, 'postgres', untilReady, { signal: bounded })
        if (code !== 0) throw new EngineError('UNHEALTHY', "the tenant's Postgres does not take statements")
      } catch (cause) {
        throw (await reasonInLog(tenant.id, bounded).catch(() => undefined)) ?? cause
      }
    },
  }
}

function withPids(sizes: Snapshot['sizes']) {
  return { postgres: { ...sizes.postgres, pids }, runtime: { ...sizes.runtime, pids } }
}
