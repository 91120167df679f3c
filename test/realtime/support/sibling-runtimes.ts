// Several runtimes as processes that serve one tenant, as in a cluster: one Postgres home, one directory of files.
import { spawn, type ChildProcess } from 'node:child_process'
import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Test } from 'tap'
import {
  internalPaths,
  internalTokenHeader,
  tenantHeader,
  type ApiKey,
  type Limits,
  type Route,
  type TenantManifest,
} from '@tenantry/contract'
import { createHome, type TestHome } from '#test/support/home.ts'
import { freePort, startPostgres, type TestPostgres } from '#test/support/postgres.ts'
import { roomy, send, signToken, type ApiResponse, type RequestOptions } from '#test/support/runtime.ts'
import { inheritedEnvironment } from '#test/support/service-environment.ts'
import { openTcpLink } from '#test/support/tcp-link.ts'
import { internalToken, openProxy } from '#test/support/tenant-proxy.ts'
import { until } from '#test/support/until.ts'
import { WatchSource } from '#test/support/watch-source.ts'

const main = new URL('../../../tenant-runtime/src/main.ts', import.meta.url).pathname

/** One of the runtimes, as clients of the tenant reach it. */
export interface SiblingRuntime {
  readonly url: string
  /** The port for calls between the parts. */
  readonly port: number
  readonly publishableKey: string
  readonly secretKey: string
  /** The lines of the process' log. */
  readonly log: string[]
  /** Starts the process, and waits until it serves the tenant. */
  start(): Promise<void>
  /** Ends the process: SIGKILL as a crash does, SIGTERM as a replacement does. */
  end(signal: 'SIGKILL' | 'SIGTERM'): Promise<void>
  /** Stops the process without an end of its connections, and lets it continue. */
  freeze(): void
  thaw(): void
  request(method: string, path: string, options?: RequestOptions): Promise<ApiResponse>
  /** Returns the value of a metric, such as `tenantry_runtime_realtime_links`. */
  metric(name: string): Promise<number>
}

export interface SiblingScene {
  postgres: TestPostgres
  home: TestHome
  runtimes: SiblingRuntime[]
  /** Returns a JWT of a signed-in user. */
  token(sub: string): string
  /** Ends the links through which each runtime follows the others. They are opened again. */
  cutLinks(): void
  /** Waits until each of the runtimes follows `count` others. */
  untilLinked(runtimes: readonly SiblingRuntime[], count: number): Promise<void>
}

/** Starts runtimes of one tenant. All end with the test. */
export async function startSiblings(t: Test, count: number, limits: Partial<Limits> = {}): Promise<SiblingScene> {
  const postgres = await startPostgres()
  const data = await mkdtemp(join(tmpdir(), 'tenantry-siblings-'))
  const control = new WatchSource<Route, TenantManifest>(internalToken)
  await control.start()
  const home = await createHome(postgres)
  const [secretKey, publishableKey] = ['secret', 'publishable'].map(
    (kind) => `sb_${kind}_${randomBytes(24).toString('base64url')}`,
  ) as [string, string]
  const jwtSecret = randomBytes(32).toString('hex')
  const key = (kind: ApiKey['kind'], text: string): ApiKey => ({
    kind,
    sha256: createHash('sha256').update(text).digest('hex'),
  })
  control.manifests.put({
    tenant_id: home.tenantId,
    name: 'acme',
    generation: 1,
    home: { url: home.url, ddl_url: home.ddl_url, schema: home.schema },
    keys: [key('secret', secretKey), key('publishable', publishableKey)],
    jwt_secrets: [jwtSecret],
    signing_secret: randomBytes(32).toString('hex'),
    limits: { ...roomy, ...limits },
  })
  await writeFile(join(data, 'token'), internalToken, { mode: 0o600 })
  const ports = await Promise.all(Array.from({ length: count }, () => freePort()))
  const relays = await Promise.all(ports.map((port) => openTcpLink(port)))
  const ends: (() => Promise<void>)[] = []
  const runtimes = await Promise.all(
    ports.map(async (port, number): Promise<SiblingRuntime> => {
      let child: ChildProcess | undefined
      const log: string[] = []
      const proxy = await openProxy(port, home.tenantId)
      const url = `http://127.0.0.1:${proxy.port}`
      const end = async (signal: NodeJS.Signals) => {
        if (child === undefined || child.exitCode !== null || child.signalCode !== null) return
        const gone = once(child, 'exit')
        child.kill(signal)
        await gone
      }
      ends.push(async () => {
        await end('SIGKILL')
        await proxy.stop()
      })
      const internal = (path: string) => send(port, 'GET', path, { [internalTokenHeader]: internalToken })
      return {
        url,
        port,
        publishableKey,
        secretKey,
        log,
        async start() {
          child = spawn(process.execPath, [main], {
            env: {
              ...inheritedEnvironment,
              TENANTRY_PORT: String(port),
              TENANTRY_CONTROL_URL: control.url,
              TENANTRY_INTERNAL_TOKEN_FILE: join(data, 'token'),
              TENANTRY_DATA: data,
              TENANTRY_LOG_LEVEL: 'warn',
              TENANTRY_SIBLINGS: String(count - 1),
              // Its own address is among them, as in a cluster. The others are behind proxies.
              TENANTRY_SIBLING_HOSTS: ports
                .map((own, at) => `127.0.0.1:${at === number ? own : (relays[at]?.port ?? 0)}`)
                .join(','),
            },
            stdio: ['ignore', 'pipe', 'inherit'],
          })
          child.stdout?.on('data', (chunk: Buffer) => log.push(...chunk.toString().trim().split('\n')))
          await until(async () => {
            const health = await internal(internalPaths.tenantHealth(home.tenantId)).catch(() => undefined)
            return health?.status === 200 && health.json()['status'] === 'healthy'
          }, 'the runtime serves the tenant')
        },
        end,
        freeze: () => void child?.kill('SIGSTOP'),
        thaw: () => void child?.kill('SIGCONT'),
        request: (method, path, { headers = {}, body } = {}) =>
          send(
            port,
            method,
            path,
            {
              [internalTokenHeader]: internalToken,
              [tenantHeader]: home.tenantId,
              authorization: `Bearer ${secretKey}`,
              ...headers,
            },
            body,
          ),
        async metric(name) {
          const { text } = await internal(internalPaths.metrics)
          const line = text.split('\n').find((line) => line.startsWith(`${name} `))
          if (line === undefined) throw new Error(`there is no metric ${name}`)
          return Number(line.slice(name.length + 1))
        },
      }
    }),
  )
  t.teardown(async () => {
    await Promise.all(ends.map((end) => end()))
    await Promise.all(relays.map((relay) => relay.stop()))
    await control.stop()
    await postgres.stop()
    await rm(data, { recursive: true, force: true })
  })
  await Promise.all(runtimes.map((runtime) => runtime.start()))
  const untilLinked = (linked: readonly SiblingRuntime[], links: number) =>
    until(async () => {
      const open = await Promise.all(linked.map((runtime) => runtime.metric('tenantry_runtime_realtime_links')))
      return open.every((number) => number === links)
    }, `each runtime follows ${links} others`)
  await untilLinked(runtimes, count - 1)
  return {
    postgres,
    home,
    runtimes,
    token: (sub) => signToken({ sub, role: 'authenticated', exp: Math.floor(Date.now() / 1000) + 3600 }, jwtSecret),
    cutLinks() {
      for (const relay of relays) relay.cut()
    },
    untilLinked,
  }
}
