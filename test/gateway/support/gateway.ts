// A gateway in this process with doubles of the control plane and of a runtime, and a plain HTTP client.
import { randomBytes, randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { request as httpRequest, type IncomingHttpHeaders, type OutgoingHttpHeaders } from 'node:http'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Route } from '@tenantry/contract'
import type { Test } from 'tap'
import { startGateway, type Gateway, type GatewayOptions } from '#gateway/gateway.ts'
import { until } from '#test/support/until.ts'
import { WatchSource } from '#test/support/watch-source.ts'
import { startUpstream, type Upstream } from './upstream.ts'

export const token = 'the-internal-token-of-this-test'

export interface Setting {
  gateway: Gateway
  control: WatchSource<Route>
  upstream: Upstream
  data: string
  errors: unknown[]
  /** Adds a route. The upstream serves `{gateway}/t/{name}` from then on. */
  add(name: string, more?: Partial<Route>): Promise<Route>
  /** Puts the route and waits until the gateway has applied it. */
  put(route: Route): Promise<void>
  restart(options?: Partial<GatewayOptions>): Promise<void>
}

/** Starts a gateway and its doubles, which stop with the test. */
export async function startSetting(t: Test, options: Partial<GatewayOptions> = {}): Promise<Setting> {
  const data = await mkdtemp(join(tmpdir(), 'tenantry-gateway-'))
  const control = new WatchSource<Route>(token)
  await control.start()
  const upstream = await startUpstream()
  const errors: unknown[] = []
  let running: Gateway | undefined
  t.teardown(async () => {
    await running?.stop(0)
    await control.stop()
    await upstream.stop()
    await rm(data, { recursive: true, force: true })
  })
  const start = async (more: Partial<GatewayOptions>) =>
    (running = await startGateway({
      host: '127.0.0.1',
      port: 0,
      internalHost: '127.0.0.1',
      internalPort: 0,
      controlUrl: control.url,
      internalToken: token,
      data,
      domain: 'localhost',
      source: 'gateway-test-0',
      now: Date.now,
      elapsed: () => performance.now(),
      newId: randomUUID,
      fetch: globalThis.fetch,
      collect: () => undefined,
      log: { info: () => undefined, warn: (fields) => errors.push(fields), debug: () => undefined },
      pushInterval: 20,
      ...options,
      ...more,
      // All clients of a test have one address.
      limits: { rejectionsPerSecond: 1_000_000, rejectionsBurst: 1_000_000, ...options.limits, ...more.limits },
    }))
  const setting: Setting = {
    gateway: await start({}),
    control,
    upstream,
    data,
    errors,
    async add(name, more = {}) {
      const route: Route = {
        tenant_id: newTenantId(),
        name,
        generation: 1,
        phase: 'ready',
        runtimes: [upstream.url],
        dedicated: false,
        ...more,
      }
      await setting.put(route)
      return route
    },
    async put(route) {
      control.routes.put(route)
      await until(async () => {
        const { status, body } = await appliedRoute(setting.gateway, route.tenant_id)
        return status === 200 && (JSON.parse(body) as Route).generation === route.generation
      })
    },
    async restart(more = {}) {
      await setting.gateway.stop(0)
      setting.gateway = await start(more)
    },
  }
  return setting
}

export function newTenantId(): string {
  return `t_${randomBytes(10).toString('hex')}`
}

/** Returns the route as the gateway has applied it, over its internal server. */
export function appliedRoute(gateway: Gateway, tenantId: string): Promise<ReceivedResponse> {
  return send(gateway.internalPort, {
    path: `/internal/v1/routes/${tenantId}`,
    headers: { 'x-tenantry-internal': token },
  })
}

export interface ReceivedResponse {
  status: number
  headers: IncomingHttpHeaders
  rawHeaders: string[]
  body: string
}

export interface RequestOptions {
  path: string
  method?: string
  headers?: OutgoingHttpHeaders | string[]
  body?: string | Buffer
}

/** Sends one request on its own connection. */
export async function send(port: number, options: RequestOptions): Promise<ReceivedResponse> {
  const request = httpRequest({ agent: false, host: '127.0.0.1', port, method: 'GET', ...options })
  // `once` reports errors before the response. After it, the connection may be cut while the body is still being sent.
  request.on('error', () => undefined)
  request.end(options.body)
  const [response] = (await once(request, 'response')) as [import('node:http').IncomingMessage]
  let body = ''
  for await (const chunk of response.setEncoding('latin1')) body += String(chunk)
  return { status: response.statusCode ?? 0, headers: response.headers, rawHeaders: response.rawHeaders, body }
}

/** Sends bytes as is, and returns all bytes that arrive until the connection ends. */
export async function sendRaw(port: number, bytes: string, { waitFor }: { waitFor?: RegExp } = {}): Promise<string> {
  const socket = connect(port, '127.0.0.1')
  let got = ''
  const ended = new Promise<void>((resolve) => {
    socket.on('data', (chunk: Buffer) => {
      got += chunk.toString('latin1')
      if (waitFor?.test(got) === true) resolve()
    })
    socket.on('error', () => resolve())
    socket.on('close', () => resolve())
  })
  socket.write(bytes, 'latin1')
  await ended
  socket.destroy()
  return got
}
