// The door to the tenants' databases: finds the tenant by the SQL user, and passes bytes to the Postgres that has them.
import { connect, createServer, type Server, type Socket } from 'node:net'
import { createSecureContext } from 'node:tls'
import { isTenantId, type Route } from '@tenantry/contract'
import { refusalOfPhase, refusals } from '../errors.ts'
import { joinSockets } from '../forward/joined.ts'
import type { LiveConnections } from '../forward/live-connections.ts'
import type { Limits } from '../limits.ts'
import type { Meter } from '../meter/meter.ts'
import type { RouteTable } from '../routes/route-table.ts'
import type { WaitingRoom } from '../waiting/waiting-room.ts'
import { CancelKeyFinder } from './cancel-key.ts'
import { fatalMessage, sqlRefusal, sqlRefusals, type SqlRefusal } from './fatal.ts'
import { greet } from './greeting.ts'

export interface PostgresDoorOptions {
  /** 0 takes a free one. */
  port: number
  routes: RouteTable
  waiting: WaitingRoom
  meter: Meter
  live: LiveConnections
  limits: Limits
  /** Certificate chain and key in PEM; without them the door speaks in the clear. */
  tls?: { cert: string; key: string }
}

/** A client that may come in. */
interface Login {
  client: Socket
  /** Its startup packet. */
  packet: Buffer
  tenantId: string
}

/** Milliseconds that a refused client has to take its answer. */
const lastWordsMilliseconds = 1_000

export class PostgresDoor {
  /** Made, not yet listening. */
  readonly server: Server
  readonly port: number
  readonly #options: PostgresDoorOptions
  readonly #secureContext: ReturnType<typeof createSecureContext> | undefined
  readonly #clients = new Set<Socket>()
  /** Sessions by tenant, those that wait for their tenant to wake among them. */
  readonly #sessions = new Map<string, number>()
  #sessionCount = 0
  /** Where the session with this cancel key is, `host:port`. */
  readonly #cancelKeys = new Map<string, string>()

  /** @throws when the certificate or its key is none */
  constructor(options: PostgresDoorOptions) {
    this.#options = options
    this.port = options.port
    this.#secureContext = options.tls === undefined ? undefined : createSecureContext(options.tls)
    this.server = createServer({ noDelay: true }, (client) => void this.#serve(client))
    this.server.maxConnections = options.limits.sqlSessions + options.limits.sqlStrangers
  }

  /** Ends every session. */
  close(): void {
    this.server.close()
    for (const client of this.#clients) client.destroy()
  }

  async #serve(raw: Socket): Promise<void> {
    const { limits } = this.#options
    this.#clients.add(raw)
    raw.on('error', () => raw.destroy())
    raw.on('close', () => this.#clients.delete(raw))
    const timer = setTimeout(() => raw.destroy(), limits.startupTimeout)
    const greeting = await greet(raw, limits.startupBytes, this.#secureContext)
    clearTimeout(timer)
    if (greeting.kind === 'gone') raw.destroy()
    else if (greeting.kind === 'refused') refuse(greeting.client, greeting.refusal)
    else if (greeting.kind === 'cancel') this.#cancel(greeting.client, greeting.packet, greeting.key)
    else this.#enter(greeting.client, greeting.packet, greeting.user)
  }

  #enter(client: Socket, packet: Buffer, user: string): void {
    const { routes, waiting, limits } = this.#options
    const tenantId = tenantOfUser(user)
    const route = tenantId === undefined ? undefined : routes.get(tenantId)
    if (tenantId === undefined || route?.postgres === undefined) {
      refuse(client, sqlRefusals.unknownUser)
      return
    }
    const refusal = refusalOfPhase(route)
    if (refusal !== undefined && refusal !== refusals.tenantWaking) {
      refuse(client, sqlRefusal(refusal))
      return
    }
    if (this.#sessionCount >= limits.sqlSessions || (this.#sessions.get(tenantId) ?? 0) >= limits.sqlSessionsPerTenant) {
      refuse(client, sqlRefusals.tooManySessions)
      return
    }
    this.#count(client, tenantId)
    const login = { client, packet, tenantId }
    if (refusal === undefined) {
      this.#open(login, route)
      return
    }
    const leave = waiting.wait(tenantId, {
      go: (awake) => this.#open(login, awake),
      refuse: (why) => refuse(client, sqlRefusal(why)),
    })
    client.on('close', leave)
  }

  #count(client: Socket, tenantId: string): void {
    const { live } = this.#options
    const meter = this.#options.meter.tenant(tenantId)
    const notLive = live.add(tenantId, () => client.destroy())
    meter.began()
    this.#sessionCount++
    this.#sessions.set(tenantId, (this.#sessions.get(tenantId) ?? 0) + 1)
    client.on('close', () => {
      notLive()
      meter.ended()
      this.#sessionCount--
      const left = (this.#sessions.get(tenantId) ?? 0) - 1
      if (left > 0) this.#sessions.set(tenantId, left)
      else this.#sessions.delete(tenantId)
    })
  }

  #open({ client, packet, tenantId }: Login, route: Route): void {
    if (client.destroyed) return
    const { postgres: address } = route
    if (address === undefined) {
      refuse(client, sqlRefusals.unknownUser)
      return
    }
    const server = this.#connect(address)
    const clientGone = () => server.destroy()
    const failed = () => refuse(client, sqlRefusals.unreachable)
    client.on('close', clientGone)
    server.on('error', failed)
    server.on('connect', () => {
      server.off('error', failed)
      client.off('close', clientGone)
      server.write(packet)
      this.#join(client, server, tenantId, address)
    })
  }

  #join(client: Socket, server: Socket, tenantId: string, address: string): void {
    const meter = this.#options.meter.tenant(tenantId)
    const finder = new CancelKeyFinder()
    let cancelKey: string | undefined
    meter.opened()
    client.on('close', () => {
      meter.closed()
      if (cancelKey !== undefined) this.#cancelKeys.delete(cancelKey)
    })
    joinSockets(client, server, (chunk) => {
      meter.egress('other', chunk.length)
      const found = finder.look(chunk)
      // A server that claims another session's key gets none of that session's cancellations.
      if (found === undefined || client.destroyed || this.#cancelKeys.has(found)) return
      cancelKey = found
      this.#cancelKeys.set(found, address)
    })
  }

  /** Passes the order on; whether it had an effect is never said, as with PostgreSQL itself. */
  #cancel(client: Socket, packet: Buffer, key: string): void {
    const address = this.#cancelKeys.get(key)
    if (address === undefined) {
      client.destroy()
      return
    }
    const server = this.#connect(address)
    const timer = setTimeout(() => server.destroy(), this.#options.limits.startupTimeout)
    server.on('connect', () => server.end(packet))
    server.on('error', () => server.destroy())
    server.on('close', () => {
      clearTimeout(timer)
      client.destroy()
    })
    server.resume()
  }

  /** Within `connectTimeout`, or an error. @param address `host:port` */
  #connect(address: string): Socket {
    const colon = address.lastIndexOf(':')
    const server = connect({ host: address.slice(0, colon).replace(/^\[|\]$/g, ''), port: Number(address.slice(colon + 1)) })
    const timer = setTimeout(() => server.destroy(new Error('no connection in time')), this.#options.limits.connectTimeout)
    const connected = () => clearTimeout(timer)
    server.on('connect', connected)
    server.on('close', connected)
    return server
  }
}

/** The one user of a tenant that comes in here: `t_<hex>_admin`. */
function tenantOfUser(user: string): string | undefined {
  const tenantId = user.endsWith('_admin') ? user.slice(0, -'_admin'.length) : ''
  return isTenantId(tenantId) ? tenantId : undefined
}

function refuse(client: Socket, refusal: SqlRefusal): void {
  client.end(fatalMessage(refusal))
  // Unread bytes at the end would cost the answer.
  client.resume()
  setTimeout(() => client.destroy(), lastWordsMilliseconds).unref()
}
