// The services one by one: a Postgres, a runtime and a gateway that run, and control planes that a test starts, arms
// with failpoints and kills.
import { spawn, type ChildProcess } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { access, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { internalPaths } from '@tenantry/contract'
import { freePort, query, startPostgres, type TestPostgres } from './postgres.ts'

const project = new URL('../../', import.meta.url).pathname

export interface Service {
  process: ChildProcess
  /** What it wrote, both streams. */
  output(): string
  /** Resolves when it has ended. */
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
  platformKey: string
  blobs: string
  /** Starts a control plane on the platform's port; returns when it answers or has ended. */
  startControlPlane(options?: ControlPlaneOptions): Promise<Service>
  /** kill -9 of the gateway; and another one in its place, which returns when it answers. */
  killGateway(): Promise<void>
  startGateway(): Promise<void>
  /** A call of the operators' API with the first platform key. */
  call(method: string, path: string, body?: unknown, headers?: Record<string, string>): Promise<Answer>
  /** A call of a tenant's own URL. */
  tenantCall(name: string, method: string, path: string, init?: { key?: string; body?: Uint8Array | string; type?: string }): Promise<Response>
  /** What all services wrote. */
  output(): string
  stop(): Promise<void>
}

export interface Answer {
  status: number
  body: Record<string, unknown>
}

export async function startPlatform(settings: { deleteGraceSeconds?: number; logLevel?: string } = {}): Promise<Platform> {
  const postgres = await startPostgres()
  const directory = await mkdtemp(join(tmpdir(), 'tenantry-platform-'))
  const [control, gateway, gatewayInternal, runtime] = await Promise.all([freePort(), freePort(), freePort(), freePort()])
  const file = async (name: string, text: string) => {
    await writeFile(join(directory, name), text, { mode: 0o600 })
    return join(directory, name)
  }
  const tokenFile = await file('internal-token', randomBytes(32).toString('base64url'))
  const keyFile = join(directory, 'platform-key')
  const region = {
    id: 'local', engine: 'process', domain: 'localhost', gateway_url: `http://127.0.0.1:${gateway}`, postgres_url: postgres.url('postgres'),
    runtime_urls: [`http://127.0.0.1:${runtime}`], gateway_internal_urls: [`http://127.0.0.1:${gatewayInternal}`],
  }
  const controlEnvironment = {
    TENANTRY_CONTROL_DATABASE_URL: postgres.url('control'),
    TENANTRY_MASTER_KEY_FILE: await file('master-key', randomBytes(32).toString('base64')),
    TENANTRY_REGIONS_FILE: await file('regions.json', JSON.stringify([region])),
    TENANTRY_PLATFORM_KEY_FILE: keyFile,
    TENANTRY_DELETE_GRACE_SECONDS: String(settings.deleteGraceSeconds ?? 3600),
  }
  const services: Service[] = []
  const start = async (main: string, livePort: number, environment: Record<string, string>): Promise<Service> => {
    const service = startService(main, { TENANTRY_INTERNAL_TOKEN_FILE: tokenFile, TENANTRY_LOG_LEVEL: settings.logLevel ?? 'warn', ...environment })
    services.push(service)
    await untilAnswersOrEnded(service, `http://127.0.0.1:${livePort}${internalPaths.live}`)
    return service
  }
  const controlUrl = `http://127.0.0.1:${control}`
  const data = { runtime: join(directory, 'runtime'), gateway: join(directory, 'gateway') }
  const startGateway = () =>
    start('gateway/src/main.ts', gatewayInternal, {
      TENANTRY_PORT: String(gateway), TENANTRY_INTERNAL_PORT: String(gatewayInternal), TENANTRY_CONTROL_URL: controlUrl, TENANTRY_DATA: data.gateway, TENANTRY_DOMAIN: 'localhost',
    })
  let [gatewayService] = await Promise.all([
    startGateway(),
    start('tenant-runtime/src/main.ts', runtime, { TENANTRY_PORT: String(runtime), TENANTRY_CONTROL_URL: controlUrl, TENANTRY_DATA: data.runtime }),
  ])
  const startControlPlane = ({ failpoints = '', port = control }: ControlPlaneOptions = {}) =>
    start('control-plane/src/main.ts', port, { ...controlEnvironment, TENANTRY_PORT: String(port), TENANTRY_FAILPOINTS: failpoints })
  const first = await startControlPlane()
  const platformKey = (await readFile(keyFile, 'utf8')).trim()
  first.process.kill('SIGTERM')
  await first.exited

  return {
    postgres,
    homesDatabase: 'tenantry_homes_1',
    controlUrl,
    gatewayUrl: region.gateway_url,
    platformKey,
    blobs: join(data.runtime, 'blobs'),
    startControlPlane,
    async killGateway() {
      gatewayService.process.kill('SIGKILL')
      await gatewayService.exited
    },
    async startGateway() {
      gatewayService = await startGateway()
    },
    async call(method, path, body, headers = {}) {
      const response = await fetch(`${controlUrl}${path}`, {
        method,
        headers: { authorization: `Bearer ${platformKey}`, ...(body === undefined ? {} : { 'content-type': 'application/json' }), ...headers },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      })
      const text = await response.text()
      return { status: response.status, body: (text === '' ? {} : JSON.parse(text)) as Record<string, unknown> }
    },
    tenantCall: (name, method, path, { key, body, type } = {}) =>
      fetch(`${region.gateway_url}/t/${name}${path}`, {
        method,
        headers: { ...(key === undefined ? {} : { authorization: `Bearer ${key}` }), ...(type === undefined ? {} : { 'content-type': type }) },
        ...(body === undefined ? {} : { body }),
      }),
    output: () => services.map((service) => service.output()).join(''),
    async stop() {
      for (const service of services.reverse()) {
        service.process.kill('SIGKILL')
        await service.exited
      }
      await postgres.stop()
      await rm(directory, { recursive: true, force: true })
    },
  }
}

function startService(main: string, environment: Record<string, string>): Service {
  const child = spawn(process.execPath, [join(project, main)], {
    env: { PATH: process.env['PATH'] ?? '', TENANTRY_HOST: '127.0.0.1', ...environment },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', (text: string) => (output += text))
  return { process: child, output: () => output, exited: once(child, 'close').then(() => undefined) }
}

async function untilAnswersOrEnded(service: Service, url: string): Promise<void> {
  const deadline = Date.now() + 30_000
  while (service.process.exitCode === null && service.process.signalCode === null) {
    const answered = await fetch(url).then(async (response) => {
      await response.body?.cancel()
      return response.ok
    }, () => false)
    if (answered) return
    if (Date.now() > deadline) throw new Error(`no answer from ${url}:\n${service.output().slice(-3000)}`)
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}

/** Everything that is there of any tenant, by tenant id: what must equal the tenants exactly. */
export interface Leftovers {
  roles: string[]
  schemas: string[]
  secrets: string[]
  files: string[]
}

export async function whatIsThere({ postgres, homesDatabase, blobs }: Platform): Promise<Leftovers> {
  const ids = async (database: string, sql: string) => (await query(postgres.url(database), sql)).map((row) => String(row['id'])).sort()
  const hasHomes = (await ids('postgres', `select datname as id from pg_database where datname = '${homesDatabase}'`)).length > 0
  const hasBlobs = await access(blobs).then(() => true, () => false)
  return {
    roles: await ids('postgres', "select rolname as id from pg_roles where rolname ~ '^t_'"),
    schemas: hasHomes ? await ids(homesDatabase, "select nspname as id from pg_namespace where nspname ~ '^t_'") : [],
    secrets: await ids('control', 'select distinct tenant_id as id from tenant_secrets'),
    files: hasBlobs ? (await readdir(blobs)).filter((name) => name.startsWith('t_')).sort() : [],
  }
}
