// Gateways in this process that lease from a real control plane, each through a proxy that can be closed, and one runtime
// that counts its requests.
import { randomBytes, randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { Agent, createServer, request as httpRequest, type IncomingMessage, type ServerResponse } from 'node:http'
import { connect, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import {
  internalPaths,
  internalTokenHeader,
  type AppliedRoute,
  type LeaseResponse,
  type Route,
  type RouteLimits,
  type UsagePush,
} from '@tenantry/contract'
import type { Test } from 'tap'
import { startGateway, type Gateway, type GatewayOptions } from '#gateway/gateway.ts'
import { internalToken, newName, type TestApi } from '#test/support/control-plane/api.ts'
import { startUpstream, type Upstream } from '#test/gateway/support/upstream.ts'
import { WatchSource } from '#test/support/watch-source.ts'

export interface QuotaGateway {
  readonly source: string
  gateway: Gateway
  /** False when its calls to the control plane find no listener. */
  reachable: boolean
  /** The number of lease calls that got a response. */
  calls: number
  /** The number of further lease calls whose responses are lost. */
  loseResponses: number
  /** Ends the gateway without a last call, as a kill does. Counts that were not pushed are lost. */
  kill(): Promise<void>
  /** Starts the next boot of the gateway, with the same name. */
  start(options?: Partial<GatewayOptions>): Promise<void>
}

export interface QuotaSetting {
  upstream: Upstream
  routes: WatchSource<Route>
  gateways: QuotaGateway[]
  /** Adds a tenant of the plan: its row in the control database, and its route. */
  addTenant(plan: string, limits?: Partial<RouteLimits>): Promise<Route>
  /** Puts the route and waits until every gateway has applied it, and holds a first lease and slots of a tenant that is ready. */
  put(route: Route): Promise<void>
}

/** The files that a gateway leaves to its next boot. */
const files = ['leases.ndjson', 'slots.ndjson']

const agent = new Agent({ keepAlive: true, maxSockets: 512 })

/** @param ofFirst options of only the first gateway */
export async function startQuotaSetting(
  t: Test,
  api: TestApi,
  count: number,
  options: Partial<GatewayOptions> = {},
  ofFirst: Partial<GatewayOptions> = {},
): Promise<QuotaSetting> {
  const upstream = await startUpstream()
  const routes = new WatchSource<Route>(internalToken)
  await routes.start()
  const gateways = await Promise.all(
    Array.from({ length: count }, (_, nth) =>
      startOne(t, api, routes, `gateway-${nth}`, nth === 0 ? { ...options, ...ofFirst } : options),
    ),
  )
  t.teardown(async () => {
    await Promise.all(gateways.map((one) => one.gateway.stop(0)))
    await routes.stop()
    await upstream.stop()
  })
  const setting: QuotaSetting = {
    upstream,
    routes,
    gateways,
    async addTenant(plan, limits = {}) {
      const id = `t_${randomBytes(10).toString('hex')}`
      const name = newName()
      await api.sql(
        "insert into tenants (id, name, plan_id, region_id, isolation, status) values ($1, $2, $3, 'local', 'schema-per-tenant', 'ready')",
        [id, name, plan],
      )
      const [{ requests } = {}] = await api.sql(
        'select requests_per_month::float8 as requests from plans where id = $1',
        [plan],
      )
      const route: Route = {
        tenant_id: id,
        name,
        generation: 1,
        phase: 'ready',
        runtimes: [upstream.url],
        dedicated: false,
        limits: {
          requests_per_month: typeof requests === 'number' ? requests : null,
          connections: null,
          rate: null,
          ...limits,
        },
      }
      await setting.put(route)
      return route
    },
    async put(route) {
      routes.routes.put(route)
      for (const { gateway, reachable } of gateways) {
        if (!reachable) continue
        for (;;) {
          const { body } = await send(gateway.internalPort, internalPaths.route(route.tenant_id), {
            [internalTokenHeader]: internalToken,
          })
          const { generation, leased } = JSON.parse(body) as Partial<AppliedRoute>
          if (generation === route.generation && (leased === true || route.phase !== 'ready')) break
        }
      }
    },
  }
  return setting
}

async function startOne(
  t: Test,
  api: TestApi,
  routes: WatchSource<Route>,
  source: string,
  options: Partial<GatewayOptions>,
): Promise<QuotaGateway> {
  const data = await mkdtemp(join(tmpdir(), 'tenantry-quota-'))
  const proxy = createServer((request, response) => void pass(request, response).catch(() => response.destroy()))
  proxy.listen(0, '127.0.0.1')
  await once(proxy, 'listening')
  const address = proxy.address()
  if (address === null || typeof address === 'string') throw new Error('no port was given')
  t.teardown(async () => {
    proxy.close()
    proxy.closeAllConnections()
    await rm(data, { recursive: true, force: true })
  })
  const pass = async (request: IncomingMessage, response: ServerResponse) => {
    if (!one.reachable) {
      request.socket.destroy()
      return
    }
    if (request.url === internalPaths.watchRoutes) {
      routes.routes.serve(response)
      return
    }
    if (request.url === internalPaths.watchBlockedAddresses) {
      routes.blocked.serve(response)
      return
    }
    let text = ''
    for await (const chunk of request.setEncoding('utf8')) text += String(chunk)
    const headers = { 'content-type': 'application/json', [internalTokenHeader]: internalToken }
    const result = await api.app.inject({ method: 'POST', url: request.url ?? '', headers, payload: text })
    if (request.url === internalPaths.leases) {
      one.calls++
      if (one.loseResponses > 0) {
        one.loseResponses--
        request.socket.destroy()
        return
      }
    }
    response.writeHead(result.statusCode, { 'content-type': 'application/json' }).end(result.payload)
  }
  const start = async (more: Partial<GatewayOptions> = {}) =>
    startGateway({
      host: '127.0.0.1',
      port: 0,
      internalHost: '127.0.0.1',
      internalPort: 0,
      controlUrl: `http://127.0.0.1:${address.port}`,
      internalToken,
      data,
      domain: 'localhost',
      source,
      now: Date.now,
      elapsed: () => performance.now(),
      newId: randomUUID,
      fetch: globalThis.fetch,
      collect: () => undefined,
      log: { info: () => undefined, warn: () => undefined, debug: () => undefined },
      pushInterval: 50,
      leaseInterval: 100,
      leaseWait: 60_000,
      leaseTimeout: 30_000,
      ...options,
      ...more,
      // All clients of a test have one address.
      limits: { rejectionsPerSecond: 1_000_000, rejectionsBurst: 1_000_000, ...options.limits, ...more.limits },
    })
  const one: QuotaGateway = {
    source,
    reachable: true,
    calls: 0,
    loseResponses: 0,
    gateway: await start(),
    async kill() {
      one.reachable = false
      // A killed process leaves its files as they were before its last steps.
      const contents = await Promise.all(files.map((name) => readFile(join(data, name), 'utf8')))
      await one.gateway.stop(0)
      await Promise.all(files.map((name, nth) => writeFile(join(data, name), contents[nth] ?? '')))
    },
    async start(more = {}) {
      one.gateway = await start(more)
    },
  }
  return one
}

export interface ReceivedResponse {
  status: number
  headers: IncomingMessage['headers']
  body: string
}

/** Sends one request on a connection that is used again. */
export async function send(
  port: number,
  path: string,
  headers: Record<string, string> = {},
): Promise<ReceivedResponse> {
  const request = httpRequest({ agent, host: '127.0.0.1', port, path, headers })
  request.end()
  const [response] = (await once(request, 'response')) as [IncomingMessage]
  let body = ''
  for await (const chunk of response.setEncoding('latin1')) body += String(chunk)
  return { status: response.statusCode ?? 0, headers: response.headers, body }
}

export interface Opened {
  /** 101, or the status of the rejection. */
  status: number
  /** The code of the error. */
  code: string | undefined
  socket: Socket
}

/** Opens a long-lived connection to the upstream's `/raw`. */
export async function openRaw(t: Test, port: number, name: string): Promise<Opened> {
  const socket = connect(port, '127.0.0.1')
  socket.on('error', () => undefined)
  t.teardown(() => socket.destroy())
  socket.write(`GET /t/${name}/raw HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: raw\r\n\r\n`)
  let text = ''
  for await (const chunk of socket.iterator({ destroyOnReturn: false })) {
    text += String(chunk)
    const status = Number(/^HTTP\/1.1 (\d+)/.exec(text)?.[1])
    const code = /"code":"(\w+)"/.exec(text)?.[1]
    if (status === 101 || code !== undefined) return { status, code, socket }
  }
  throw new Error(`the connection ended: ${text}`)
}

/** Returns the slots and open connections of a tenant, by gateway. */
export async function slotsOf(api: TestApi, tenantId: string): Promise<Record<string, [slots: number, open: number]>> {
  const rows = await api.sql('select source, slots, open from connection_slots where tenant_id = $1 order by source', [
    tenantId,
  ])
  return Object.fromEntries(rows.map(({ source, slots, open }) => [String(source), [Number(slots), Number(open)]]))
}

/** Returns what billing counts: the sum of the greatest values of the counters. */
export async function totalOf(api: TestApi, tenantId: string, meter: string): Promise<number> {
  const [row] = await api.sql(
    'select coalesce(sum(value), 0)::int as total from usage_counters where tenant_id = $1 and meter = $2',
    [tenantId, meter],
  )
  return Number(row?.['total'])
}

/** Returns the granted and used requests of the current month's leases, over all gateways or at one. */
export async function leased(
  api: TestApi,
  tenantId: string,
  source?: string,
): Promise<{ granted: number; used: number }> {
  const [row] = await api.sql(
    `select coalesce(sum(granted), 0)::int as granted, coalesce(sum(used), 0)::int as used
      from request_leases where tenant_id = $1 and source = coalesce($2, source)`,
    [tenantId, source ?? null],
  )
  return { granted: Number(row?.['granted']), used: Number(row?.['used']) }
}

/** Makes a lease call as a gateway does. */
export async function leaseCall(
  api: TestApi,
  call: Record<string, unknown>,
): Promise<{ status: number; body: LeaseResponse }> {
  const response = await api.app.inject({
    method: 'POST',
    url: internalPaths.leases,
    headers: { 'content-type': 'application/json', [internalTokenHeader]: internalToken },
    payload: JSON.stringify({ unfinished: [], stopping: false, reports: [], ...call }),
  })
  return { status: response.statusCode, body: JSON.parse(response.payload) as LeaseResponse }
}

export async function push(api: TestApi, pushed: UsagePush): Promise<void> {
  const response = await api.app.inject({
    method: 'POST',
    url: internalPaths.usage,
    headers: { 'content-type': 'application/json', [internalTokenHeader]: internalToken },
    payload: JSON.stringify(pushed),
  })
  if (response.statusCode !== 200) throw new Error(response.payload)
}
