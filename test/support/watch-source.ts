// A fake control plane for tests of a gateway or a runtime. It serves watches and leases and receives usage pushes.
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import {
  internalPaths,
  internalTokenHeader,
  type BlockedAddress,
  type CertificateCall,
  type CertificateResponse,
  type Counter,
  type LeaseResponse,
  type LeaseCall,
  type UsageResponse,
  type UsagePush,
  type WatchKey,
} from '@tenantry/contract'

interface Entry {
  tenant_id: string
}

/** One watched set. Every watcher receives each put and remove at once. */
export class WatchedSet<E extends Record<Key, string>, Key extends WatchKey> {
  readonly #key: Key
  readonly #entries = new Map<string, E>()
  readonly #watchers = new Set<ServerResponse>()

  constructor(key: Key) {
    this.#key = key
  }

  put(entry: E): void {
    this.#entries.set(entry[this.#key], entry)
    this.#send({ type: 'put', entry })
  }

  remove(id: string): void {
    this.#entries.delete(id)
    this.#send({ type: 'remove', [this.#key]: id })
  }

  /** Sends a line of any format, as a newer or broken control plane might. */
  sendRaw(line: string): void {
    for (const watcher of this.#watchers) watcher.write(`${line}\n`)
  }

  get watchers(): number {
    return this.#watchers.size
  }

  serve(response: ServerResponse): void {
    response.writeHead(200, { 'content-type': 'application/x-ndjson' })
    for (const entry of this.#entries.values()) response.write(`${JSON.stringify({ type: 'put', entry })}\n`)
    response.write(`${JSON.stringify({ type: 'synced' })}\n`)
    const ping = setInterval(() => response.write('{"type":"ping"}\n'), 1000)
    this.#watchers.add(response)
    response.on('close', () => {
      clearInterval(ping)
      this.#watchers.delete(response)
    })
  }

  #send(line: object): void {
    this.sendRaw(JSON.stringify(line))
  }
}

/** Response to a usage push. `lost`: the push is stored, but the acknowledgement never arrives. */
export type PushResponse = 'stored' | 'rejected' | 'lost'

export class WatchSource<Route extends Entry = Entry, Manifest extends Entry = Entry> {
  readonly token: string
  readonly routes = new WatchedSet<Route, 'tenant_id'>('tenant_id')
  readonly manifests = new WatchedSet<Manifest, 'tenant_id'>('tenant_id')
  readonly blocked = new WatchedSet<BlockedAddress, 'address'>('address')
  /** False for a control plane of a version without the watch of blocked addresses. */
  knowsBlocked = true
  /** Every push that was stored, in order. */
  readonly pushes: UsagePush[] = []
  /** The clock whose time gateways receive. */
  now: () => Date = () => new Date()
  pushResponse: (nth: number) => PushResponse = () => 'stored'
  #server = createServer()
  #port = 0
  #received = 0

  constructor(token: string) {
    this.token = token
  }

  get url(): string {
    return `http://127.0.0.1:${this.#port}`
  }

  /** Starts the server; after `stop`, on the same port as before. */
  async start(): Promise<void> {
    this.#server = createServer((request, response) => void this.#respond(request, response))
    this.#server.listen(this.#port, '127.0.0.1')
    await once(this.#server, 'listening')
    const address = this.#server.address()
    if (address === null || typeof address === 'string') throw new Error('no port was given')
    this.#port = address.port
  }

  async stop(): Promise<void> {
    if (!this.#server.listening) return
    const closed = once(this.#server, 'close')
    this.#server.close()
    this.#server.closeAllConnections()
    await closed
  }

  /** Sums up the usage as a control plane's ledger does: the greatest value of each counter of each boot. */
  total(matches: (counter: Counter) => boolean): number {
    const greatest = new Map<string, number>()
    for (const { source, boot, counters } of this.pushes) {
      for (const counter of counters) {
        if (!matches(counter)) continue
        const { value, ...key } = counter
        const name = JSON.stringify([source, boot, key])
        greatest.set(name, Math.max(greatest.get(name) ?? 0, value))
      }
    }
    return [...greatest.values()].reduce((sum, value) => sum + value, 0)
  }

  async #respond(request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (request.headers[internalTokenHeader] !== this.token) {
      response.writeHead(403).end()
      return
    }
    const [path] = request.url?.split('?') ?? []
    if (request.url === internalPaths.watchRoutes) this.routes.serve(response)
    else if (path === internalPaths.watchManifests) this.manifests.serve(response)
    else if (request.url === internalPaths.watchBlockedAddresses && this.knowsBlocked) this.blocked.serve(response)
    else if (request.url === internalPaths.usage && request.method === 'POST') await this.#usage(request, response)
    else if (request.url === internalPaths.leases && request.method === 'POST') await this.#lease(request, response)
    else if (request.url === internalPaths.sqlCertificate && this.issue !== undefined)
      await this.#certificate(request, response, this.issue)
    else response.writeHead(404).end()
  }

  /** Issues a certificate in PEM. Undefined for a control plane of a version without an authority. */
  issue: ((call: CertificateCall) => string) | undefined

  async #certificate(
    request: IncomingMessage,
    response: ServerResponse,
    issue: (call: CertificateCall) => string,
  ): Promise<void> {
    let text = ''
    for await (const chunk of request.setEncoding('utf8')) text += String(chunk)
    const result: CertificateResponse = { certificate: issue(JSON.parse(text) as CertificateCall) }
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(result))
  }

  /** Quota of requests a month; every call is granted what it requests. Null: no tenant has a quota. */
  monthly: number | null = null
  /** False makes calls for leases fail with 503. */
  leases = true
  /** Quota of a tenant's connections, granted on request. Null: no tenant has a quota. */
  connections: number | null = null

  async #lease(request: IncomingMessage, response: ServerResponse): Promise<void> {
    let text = ''
    for await (const chunk of request.setEncoding('utf8')) text += String(chunk)
    if (!this.leases) {
      response.writeHead(503).end()
      return
    }
    const now = this.now()
    const call = JSON.parse(text) as LeaseCall
    const limit = this.connections
    const result: LeaseResponse = {
      now: now.toISOString(),
      month: now.toISOString().slice(0, 7),
      resets_at: new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + 1)).toISOString(),
      accepted: true,
      recalled: [],
      slots_recalled: [],
      grants: call.reports.map(({ tenant_id, used, keep, ask: requested }) => ({
        tenant_id,
        granted: this.monthly === null ? null : keep + requested,
        limit: this.monthly,
        used,
        state: 'granted',
      })),
      slots: (call.slots ?? []).map(({ tenant_id, keep, ask: requested, waiting, open }) => {
        const held = limit === null ? null : Math.min(limit, keep + requested)
        return {
          tenant_id,
          held,
          limit,
          open,
          state: held === null || held - keep >= waiting ? 'granted' : 'exhausted',
        }
      }),
    }
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(result))
  }

  async #usage(request: IncomingMessage, response: ServerResponse): Promise<void> {
    let text = ''
    for await (const chunk of request.setEncoding('utf8')) text += String(chunk)
    const result = this.pushResponse(this.#received++)
    if (result !== 'rejected') this.pushes.push(JSON.parse(text) as UsagePush)
    if (result === 'lost') request.socket.destroy()
    else if (result === 'rejected') response.writeHead(503).end()
    else
      response
        .writeHead(200, { 'content-type': 'application/json' })
        .end(JSON.stringify({ accepted: true, now: this.now().toISOString() } satisfies UsageResponse))
  }
}
