// The platform's services as single processes: a running Postgres, runtime and gateway, and control planes that a test
// starts, arms with failpoints and kills.
import { spawn, type ChildProcess } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { access, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { internalPaths } from '@tenantry/contract'
import { operatorCalls, tenantCalls, type OperatorCall, type TenantCaller } from './platform-calls.ts'
import type { MovedClock } from './moved-clock.ts'
import { freePort, query, startPostgres, type TestPostgres } from './postgres.ts'
import { inheritedEnvironment } from './service-environment.ts'

const project = new URL('../../', import.meta.url).pathname

export interface Service {
  process: ChildProcess
  /** Everything that the process wrote to standard output and standard error. */
  output(): string
  /** Resolves when the process has ended. */
  exited: Promise<void>
}

export interface ControlPlaneOptions {
  failpoints?: string
  port?: number
}

export interface Platform {
  postgres: TestPostgres
  /** Name of the first database of homes. */
  homesDatabase: string
  controlUrl: string
  gatewayUrl: string
  /** URLs of all gateways; `gatewayUrl` is the first. */
  gatewayUrls: readonly string[]
  platformKey: string
  masterKeyFile: string
  internalTokenFile: string
  /** The file of the superuser's passwords, if the platform has one. */
  postgresPasswordFile: string | undefined
  /** The URLs of the control plane, the runtime and the first gateway for calls between them. */
  internalUrls: Record<'controlPlane' | 'runtime' | 'gateway', string>
  blobs: string
  /** Starts a control plane on the platform's port. Resolves when it responds or has ended. */
  startControlPlane(options?: ControlPlaneOptions): Promise<Service>
  /** Kills the first gateway with SIGKILL. `startGateway` starts another in its place and waits until it responds. */
  killGateway(): Promise<void>
  startGateway(): Promise<void>
  /** Returns the first gateway. */
  gateway(): Service
  /** Kills the runtime with SIGKILL, starts it again and waits until it responds. */
  restartRuntime(): Promise<void>
  /** Calls the operators' API with the first platform key. */
  call: OperatorCall
  /** Calls a tenant's URL. */
  tenantCall: TenantCaller
  /** The output of all services. */
  output(): string
  stop(): Promise<void>
}

export interface PlatformSettings {
  deleteGraceSeconds?: number
  logLevel?: string
  /** Number of gateways; the default is 1. */
  gateways?: number
  /** More environment variables of the control plane. */
  control?: Record<string, string>
  /** Path of the runtime's program in the project; by default, that of the real one. */
  runtimeProgram?: string
  /** More environment variables of the runtime. */
  runtime?: Record<string, string>
  /** Clock of the control plane, the runtime and the homes; gateways use the machine's clock. */
  clock?: MovedClock
  /** The superuser's password, in a file that may be changed; `postgres.url` then has another one. */
  superuserPassword?: string
  /** More settings of Postgres. */
  postgres?: Record<string, string>
  /** Opens the port through which the services reach Postgres; by default, that of Postgres itself. */
  linkToPostgres?: (port: number) => Promise<number>
  /** Whether the first gateway is the Postgres proxy that tenants' `database_url` names. */
  hasPostgresProxy?: boolean
}

const homesDatabase = 'tenantry_homes_1'

export async function startPlatform(settings: PlatformSettings = {}): Promise<Platform> {
  const { clock } = settings
  const postgres = await startPostgres(settings.postgres)
  await clock?.makeDatabase(postgres, homesDatabase)
  const directory = await mkdtemp(join(tmpdir(), 'tenantry-platform-'))
  const [control, runtime] = await Promise.all([freePort(), freePort()])
  const gateways = await Promise.all(
    Array.from({ length: settings.gateways ?? 1 }, async (_, number) => ({
      number,
      port: await freePort(),
      internalPort: await freePort(),
    })),
  )
  const proxyPort = settings.hasPostgresProxy === true ? await freePort() : undefined
  const gatewayUrls = gateways.map(({ port }) => `http://127.0.0.1:${port}`)
  const [gatewayUrl = ''] = gatewayUrls
  const file = async (name: string, text: string) => {
    await writeFile(join(directory, name), text, { mode: 0o600 })
    return join(directory, name)
  }
  const tokenFile = await file('internal-token', randomBytes(32).toString('base64url'))
  const keyFile = join(directory, 'platform-key')
  const { superuserPassword } = settings
  if (superuserPassword !== undefined)
    await query(postgres.url('postgres'), `alter role postgres password '${superuserPassword}'`)
  const postgresPasswordFile =
    superuserPassword === undefined ? undefined : await file('postgres-password', superuserPassword)
  const regionPostgres = new URL(postgres.url('postgres'))
  regionPostgres.port = String((await settings.linkToPostgres?.(postgres.port)) ?? postgres.port)
  const region = {
    id: 'local',
    engine: 'process',
    domain: 'localhost',
    gateway_url: gatewayUrl,
    postgres_url: regionPostgres.href,
    ...(postgresPasswordFile === undefined ? {} : { postgres_password_file: postgresPasswordFile }),
    ...(proxyPort === undefined ? {} : { database_host: `127.0.0.1:${proxyPort}` }),
    runtime_urls: [`http://127.0.0.1:${runtime}`],
    gateway_internal_urls: gateways.map(({ internalPort }) => `http://127.0.0.1:${internalPort}`),
  }
  const masterKeyFile = await file('master-key', randomBytes(32).toString('base64'))
  const controlEnvironment = {
    TENANTRY_CONTROL_DATABASE_URL: postgres.url('control'),
    ...(postgresPasswordFile === undefined ? {} : { TENANTRY_CONTROL_DATABASE_PASSWORD_FILE: postgresPasswordFile }),
    TENANTRY_MASTER_KEY_FILE: masterKeyFile,
    TENANTRY_REGIONS_FILE: await file('regions.json', JSON.stringify([region])),
    TENANTRY_PLATFORM_KEY_FILE: keyFile,
    TENANTRY_DELETE_GRACE_SECONDS: String(settings.deleteGraceSeconds ?? 3600),
    ...settings.control,
  }
  const services: Service[] = []
  const start = async (
    main: string,
    livePort: number,
    environment: Record<string, string>,
    preloads: readonly string[] = [],
  ): Promise<Service> => {
    const service = startService(main, preloads, {
      TENANTRY_INTERNAL_TOKEN_FILE: tokenFile,
      TENANTRY_LOG_LEVEL: settings.logLevel ?? 'warn',
      ...environment,
    })
    services.push(service)
    try {
      await untilRespondingOrEnded(service, `http://127.0.0.1:${livePort}${internalPaths.live}`)
    } catch (error) {
      await stop()
      throw error
    }
    return service
  }
  // A service that does not respond ends the whole platform: a process that is left keeps the test file from ending.
  let stopped: Promise<void> | undefined
  const stop = () => (stopped ??= stopAll())
  const stopAll = async () => {
    for (const service of services.reverse()) {
      service.process.kill('SIGKILL')
      await service.exited
    }
    await postgres.stop()
    await rm(directory, { recursive: true, force: true })
  }
  const controlUrl = `http://127.0.0.1:${control}`
  const startGateway = ({ number, port, internalPort }: (typeof gateways)[number]) =>
    start('gateway/src/main.ts', internalPort, {
      TENANTRY_PORT: String(port),
      TENANTRY_INTERNAL_PORT: String(internalPort),
      ...(proxyPort === undefined || number > 0 ? {} : { TENANTRY_POSTGRES_PORT: String(proxyPort) }),
      TENANTRY_CONTROL_URL: controlUrl,
      TENANTRY_DATA: join(directory, `gateway-${number}`),
      TENANTRY_DOMAIN: 'localhost',
      TENANTRY_SOURCE: `gateway-local-${number}`,
      // All clients of a test have one address.
      TENANTRY_REJECTIONS_PER_ADDRESS: '1000000/1000000',
    })
  const runtimeData = join(directory, 'runtime')
  const startRuntime = () =>
    start(
      settings.runtimeProgram ?? 'tenant-runtime/src/main.ts',
      runtime,
      {
        TENANTRY_PORT: String(runtime),
        TENANTRY_CONTROL_URL: controlUrl,
        TENANTRY_DATA: runtimeData,
        ...clock?.environments.runtime,
        ...settings.runtime,
      },
      clock?.preloads,
    )
  const [running, firstRuntime] = await Promise.all([Promise.all(gateways.map(startGateway)), startRuntime()])
  let runningRuntime = firstRuntime
  const startControlPlane = ({ failpoints = '', port = control }: ControlPlaneOptions = {}) =>
    start(
      'control-plane/src/main.ts',
      port,
      {
        ...controlEnvironment,
        TENANTRY_PORT: String(port),
        TENANTRY_FAILPOINTS: failpoints,
        ...clock?.environments.controlPlane,
      },
      clock?.preloads,
    )
  const first = await startControlPlane()
  const platformKey = (await readFile(keyFile, 'utf8')).trim()
  first.process.kill('SIGTERM')
  await first.exited

  return {
    postgres,
    homesDatabase,
    controlUrl,
    gatewayUrl,
    gatewayUrls,
    platformKey,
    masterKeyFile,
    internalTokenFile: tokenFile,
    postgresPasswordFile,
    internalUrls: {
      controlPlane: controlUrl,
      runtime: region.runtime_urls[0] ?? '',
      gateway: region.gateway_internal_urls[0] ?? '',
    },
    blobs: join(runtimeData, 'blobs'),
    startControlPlane,
    async killGateway() {
      running[0]?.process.kill('SIGKILL')
      await running[0]?.exited
    },
    gateway() {
      const [first] = running
      if (first === undefined) throw new Error('The platform has no gateway.')
      return first
    },
    async startGateway() {
      running.splice(0, 1, ...(await Promise.all(gateways.slice(0, 1).map(startGateway))))
    },
    async restartRuntime() {
      runningRuntime.process.kill('SIGKILL')
      await runningRuntime.exited
      runningRuntime = await startRuntime()
    },
    call: operatorCalls(controlUrl, platformKey),
    tenantCall: tenantCalls([gatewayUrl, ...gatewayUrls.slice(1)]),
    output: () => services.map((service) => service.output()).join(''),
    stop,
  }
}

/** Starts a service as a process. @param main path of its program in the project */
export function startService(main: string, preloads: readonly string[], environment: Record<string, string>): Service {
  const child = spawn(process.execPath, [...preloads.map((file) => `--import=${file}`), join(project, main)], {
    env: { ...inheritedEnvironment, TENANTRY_HOST: '127.0.0.1', ...environment },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let output = ''
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text: string) => (output += text))
  return { process: child, output: () => output, exited: once(child, 'close').then(() => undefined) }
}

async function untilRespondingOrEnded(service: Service, url: string): Promise<void> {
  const deadline = Date.now() + 120_000
  while (service.process.exitCode === null && service.process.signalCode === null) {
    const result = await fetch(url).then(
      async (response) => {
        await response.body?.cancel()
        return response.ok
      },
      () => false,
    )
    if (result) return
    if (Date.now() > deadline) throw new Error(`no response from ${url}:\n${service.output().slice(-3000)}`)
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}

/** IDs of the tenants that have roles, schemas, secrets or files. Each list must equal the list of tenants. */
export interface TenantData {
  roles: string[]
  schemas: string[]
  secrets: string[]
  files: string[]
}

export async function listTenantData({ postgres, homesDatabase, blobs }: Platform): Promise<TenantData> {
  const ids = async (database: string, sql: string) =>
    (await query(postgres.url(database), sql)).map((row) => String(row['id'])).sort()
  const hasHomes =
    (await ids('postgres', `select datname as id from pg_database where datname = '${homesDatabase}'`)).length > 0
  const hasBlobs = await access(blobs).then(
    () => true,
    () => false,
  )
  return {
    roles: await ids('postgres', "select rolname as id from pg_roles where rolname ~ '^t_'"),
    schemas: hasHomes ? await ids(homesDatabase, "select nspname as id from pg_namespace where nspname ~ '^t_'") : [],
    secrets: await ids('control', 'select distinct tenant_id as id from tenant_secrets'),
    files: hasBlobs ? (await readdir(blobs)).filter((name) => name.startsWith('t_')).sort() : [],
  }
}
