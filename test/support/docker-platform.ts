// The platform on a Docker Engine, for tests and benchmarks. The control plane is a child process; it makes containers for
// everything else. Each platform has an installation, networks and ports of its own.
import { spawn } from 'node:child_process'
import { randomBytes, randomInt } from 'node:crypto'
import { once } from 'node:events'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { ContainerHost } from '#control-plane/engines/container-host.ts'
import { connectDocker } from '#control-plane/engines/docker/docker-connection.ts'
import { dockerHost } from '#control-plane/engines/docker/docker-host.ts'
import type { DockerSettings } from '#control-plane/stacks/container-settings.ts'
import { regionAddress, parseRange } from '#control-plane/stacks/subnets.ts'
import { freePort, query, startPostgres, type TestPostgres } from './postgres.ts'
import { inheritedEnvironment } from './service-environment.ts'

const project = new URL('../../', import.meta.url).pathname

/** The images of clusters, as a region's configuration names them. */
export const clusterImages = { member_image: 'tenantry/cluster-member:latest', etcd_image: 'tenantry/etcd:latest' }

export interface ControlPlane {
  pid: number
  output(): string
  /** Resolves when the process has ended. */
  exited: Promise<void>
  kill(signal?: NodeJS.Signals): Promise<void>
  /** The signal that ended the process, or null. */
  signalCode(): NodeJS.Signals | null
}

export interface ApiResponse {
  status: number
  body: Record<string, unknown>
}

export interface DockerPlatform {
  postgres: TestPostgres
  host: ContainerHost
  /** The installation's name, which is a label of every object that the platform makes on the engine. */
  installation: string
  /** The control plane that was started first. */
  controlPlane: ControlPlane
  controlUrl: string
  gatewayUrl: string
  /** `host:port` of the gateway's Postgres proxy. */
  databaseHost: string
  platformKey: string
  startControlPlane(options?: { failpoints?: string; environment?: Record<string, string> }): Promise<ControlPlane>
  call(method: string, path: string, body?: unknown, headers?: Record<string, string>): Promise<ApiResponse>
  tenantCall(
    name: string,
    method: string,
    path: string,
    init?: { key?: string; body?: Uint8Array | string; type?: string },
  ): Promise<Response>
  /** The installation's own secrets. Tests search for them in output that must not contain them. */
  secretTexts(): Promise<string[]>
  /** Runs a statement in the control database. @returns its rows */
  sql(text: string, values?: unknown[]): Promise<Record<string, unknown>[]>
  /** Waits until the API returns a tenant for which `holds` is true. @throws Error with the last response */
  until(
    tenantId: string,
    holds: (tenant: Record<string, unknown>) => boolean,
    seconds?: number,
  ): Promise<Record<string, unknown>>
  /** Kills a container, as `docker kill` does. */
  kill(container: string): Promise<void>
  /** Stops all running control planes with SIGTERM. */
  stopControlPlanes(): Promise<void>
  /** Stops all processes and removes the platform's objects from the engine. */
  stop(): Promise<void>
}

export interface DockerPlatformOptions {
  docker?: Pick<DockerSettings, 'clusters' | 'egress' | 'storage'> & {
    shared_runtimes?: number
    warm_stacks?: number
    pause_after_seconds?: number
    network_range?: string
    /** The engine's address for the control plane, when a test puts a proxy in front of the engine. */
    host?: string
    images?: { postgres: string; runtime: string; gateway: string }
  }
  /** More regions, in the format of the regions file. */
  regions?: (controlPort: number) => object[]
  deleteGraceSeconds?: number
  orphanGraceSeconds?: number
  logLevel?: string
  environment?: Record<string, string>
}

/** Returns the address of the test's Docker Engine. @throws Error when none is set: a test without an engine fails, it is not skipped */
export function testEngine(): string {
  const host = process.env['TENANTRY_DOCKER_HOST']
  if (host === undefined || host === '')
    throw new Error('TENANTRY_DOCKER_HOST is not set: these tests need a Docker Engine (npm test starts one)')
  return host
}

export async function startDockerPlatform(options: DockerPlatformOptions = {}): Promise<DockerPlatform> {
  const engine = testEngine()
  const host = dockerHost({ host: engine })
  const postgres = await startPostgres()
  const directory = await mkdtemp(join(tmpdir(), 'tenantry-docker-'))
  const [control, gateway, proxy] = await Promise.all([freePort(), freePort(), freePort()])
  const range = options.docker?.network_range ?? `10.${randomInt(64, 192)}.${randomInt(0, 16) * 16}.0/20`
  const file = async (name: string, text: string) => {
    await writeFile(join(directory, name), text, { mode: 0o600 })
    return join(directory, name)
  }
  const region = {
    id: 'local',
    engine: 'docker',
    domain: 'localhost',
    gateway_url: `http://127.0.0.1:${gateway}`,
    docker: {
      shared_runtimes: 1,
      host: engine,
      images: {
        postgres: 'tenantry/postgres:latest',
        runtime: 'tenantry/tenant-runtime:latest',
        gateway: 'tenantry/gateway:latest',
      },
      ...options.docker,
      network_range: range,
      control_url: `http://${regionAddress(parseRange(range), 1)}:${control}`,
      gateway: { host_address: '127.0.0.1', port: gateway, postgres_port: proxy },
    },
  }
  const keyFile = join(directory, 'platform-key')
  const environment = {
    ...inheritedEnvironment,
    TENANTRY_HOST: '0.0.0.0',
    TENANTRY_PORT: String(control),
    TENANTRY_LOG_LEVEL: options.logLevel ?? 'warn',
    TENANTRY_INTERNAL_TOKEN_FILE: await file('internal-token', randomBytes(32).toString('base64url')),
    TENANTRY_CONTROL_DATABASE_URL: postgres.url('control'),
    TENANTRY_MASTER_KEY_FILE: await file('master-key', randomBytes(32).toString('base64')),
    TENANTRY_REGIONS_FILE: await file('regions.json', JSON.stringify([region, ...(options.regions?.(control) ?? [])])),
    TENANTRY_PLATFORM_KEY_FILE: keyFile,
    TENANTRY_DELETE_GRACE_SECONDS: String(options.deleteGraceSeconds ?? 3600),
    TENANTRY_ORPHAN_GRACE_SECONDS: String(options.orphanGraceSeconds ?? 3600),
    ...options.environment,
  }
  const running = new Set<ControlPlane>()
  const controlUrl = `http://127.0.0.1:${control}`

  const startControlPlane: DockerPlatform['startControlPlane'] = async ({
    failpoints = '',
    environment: extra = {},
  } = {}) => {
    const child = spawn(process.execPath, [join(project, 'control-plane/src/main.ts')], {
      env: { ...environment, ...extra, TENANTRY_FAILPOINTS: failpoints },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    let output = ''
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding('utf8').on('data', (text: string) => (output += text))
    const exited = once(child, 'close').then(() => undefined)
    const plane: ControlPlane = {
      pid: child.pid ?? 0,
      output: () => output,
      exited,
      signalCode: () => child.signalCode,
      async kill(signal = 'SIGKILL') {
        running.delete(plane)
        child.kill(signal)
        await exited
      },
    }
    running.add(plane)
    const deadline = Date.now() + 90_000
    while (child.exitCode === null && child.signalCode === null) {
      const live = await fetch(`${controlUrl}/health`).then(
        (response) => response.body?.cancel().then(() => true),
        () => false,
      )
      if (live === true) return plane
      if (Date.now() > deadline) throw new Error(`the control plane did not respond:\n${output.slice(-3000)}`)
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
    if (failpoints === '') throw new Error(`the control plane ended:\n${output.slice(-3000)}`)
    return plane
  }

  const first = await startControlPlane()
  const platformKey = (await readFile(keyFile, 'utf8')).trim()
  const installation = String((await query(postgres.url('control'), 'select name from installation'))[0]?.['name'])
  await untilGatewayResponds(`http://127.0.0.1:${gateway}`, first)

  const call: DockerPlatform['call'] = async (method, path, body, headers = {}) => {
    const response = await fetch(`${controlUrl}${path}`, {
      method,
      headers: {
        authorization: `Bearer ${platformKey}`,
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })
    const text = await response.text()
    return { status: response.status, body: (text === '' ? {} : JSON.parse(text)) as Record<string, unknown> }
  }

  return {
    postgres,
    host,
    installation,
    controlPlane: first,
    controlUrl,
    platformKey,
    startControlPlane,
    call,
    gatewayUrl: region.gateway_url,
    databaseHost: `127.0.0.1:${proxy}`,
    tenantCall: (name, method, path, { key, body, type } = {}) =>
      fetch(`${region.gateway_url}/t/${name}${path}`, {
        method,
        headers: {
          ...(key === undefined ? {} : { authorization: `Bearer ${key}` }),
          ...(type === undefined ? {} : { 'content-type': type }),
        },
        ...(body === undefined ? {} : { body }),
      }),
    secretTexts: () =>
      Promise.all(
        ['TENANTRY_INTERNAL_TOKEN_FILE', 'TENANTRY_MASTER_KEY_FILE'].map((name) =>
          readFile(environment[name as keyof typeof environment], 'utf8'),
        ),
      ),
    sql: (text, values) => query(postgres.url('control'), text, values),
    async until(tenantId, holds, seconds = 60) {
      const deadline = Date.now() + seconds * 1000
      for (;;) {
        const response = await call('GET', `/v1/tenants/${tenantId}`).catch(() => undefined)
        if (response !== undefined && holds(response.body)) return response.body
        if (Date.now() > deadline)
          throw new Error(
            `not in ${seconds} s: ${JSON.stringify(response?.body)}\n` +
              [...running].map((plane) => plane.output().slice(-3000)).join('\n'),
          )
        await new Promise((resolve) => setTimeout(resolve, 50))
      }
    },
    async kill(container) {
      await connectDocker({ host: engine }).docker.getContainer(container).kill()
    },
    async stopControlPlanes() {
      for (const plane of running) await plane.kill('SIGTERM')
    },
    async stop() {
      for (const plane of running) await plane.kill('SIGKILL')
      await removeAll(host, installation)
      await postgres.stop()
      await rm(directory, { recursive: true, force: true })
    },
  }
}

async function untilGatewayResponds(url: string, plane: ControlPlane): Promise<void> {
  const deadline = Date.now() + 90_000
  for (;;) {
    const result = await fetch(url).then(
      (response) => response.body?.cancel().then(() => true),
      () => false,
    )
    if (result === true) return
    if (Date.now() > deadline) throw new Error(`the gateway did not respond:\n${plane.output().slice(-4000)}`)
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
}

/** Removes all objects with the installation's label from the engine. */
export async function removeAll(host: ContainerHost, installation: string): Promise<void> {
  const owner = { installation }
  const signal = AbortSignal.timeout(120_000)
  const { containers, networks, volumes } = await host.observe(owner, signal)
  for (const { name } of containers) await host.removeContainer(name, owner, signal)
  for (const { name } of networks) await host.removeNetwork(name, owner, signal)
  for (const { name } of volumes) await host.removeVolume(name, owner, signal)
}
