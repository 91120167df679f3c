// The door to the tenants' databases: finds the tenant by the SQL user, and passes bytes to the Postgres that has them.
import { connect, createServer, type Server, type Socket } from 'node:net'
import { createSecureContext } from 'node:tls'
import { isTenantId, type Route } from '@tenantry/contract'
import { refusalOfPhase, refusals } from '../errors.ts'
import { joinSockets } from '../forward/joined.ts'
import type { LiveConnections } from '../forward/live-connections.ts'
import type { Limits } from '../limits.ts'
import type { Meter } from '../meter/meter.ts'
import type { Quota, TenantGate } from '../quota/quota.ts'
import type { RouteTable } from '../routes/route-table.ts'
import type { WaitingRoom } from '../waiting/waiting-room.ts'
import { fatalMessage, sqlRefusal, sqlRefusalOfSession, sqlRefusals, type SqlRefusal } from './fatal.ts'
import { greet } from './greeting.ts'
import { heldSession, type WaitingSession } from './held-session.ts'
import { Places, type Leave } from './places.ts'
import { SessionStart } from './session-start.ts'

interface PostgresDoorOptions {
  /** 0 takes a free one. */
  port: number
  routes: RouteTable
  waiting: WaitingRoom
  meter: Meter
  quota: Quota
  live: LiveConnections
  limits: Limits
  /** Certificate chain and key in PEM; without them the door speaks in the clear. */
  tls?: { cert: string; key: string }
}

/** A connection whose client no Postgres has let in yet. */
interface Stranger {
  address: string
  /** Starts and stops the time after which it is cut. */
  hurry: () => void
  wait: () => void
  /** Another stranger may take its place. */
  leave: Leave
}

/** A client that may try its password. */
interface Login {
  client: Socket
  /** Its startup packet. */
  packet: Buffer
  tenantId: string
  stranger: Stranger
  /** Of its place among the tenant's logins. */
  leave: Leave
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
  readonly #places: Places
  /** Where the session with this cancel key is, `host:port`. */
  readonly #cancelKeys = new Map<string, string>()

  /** @throws when the certificate or its key is none */
  constructor(options: PostgresDoorOptions) {
    this.#options = options
    this.port = options.port
    this.#places = new Places(options.limits)
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
    raw.on('error', () => raw.destroy())
    const stranger = this.#stranger(raw)
    if (stranger === undefined) {
      raw.destroy()
      return
    }
    this.#clients.add(raw)
    raw.on('close', () => this.#clients.delete(raw))
    const greeting = await greet(raw, limits.startupBytes, this.#secureContext)
    if (greeting.kind === 'gone') raw.destroy()
    else if (greeting.kind === 'refused') refuse(greeting.client, greeting.refusal)
    else if (greeting.kind === 'cancel') this.#cancel(greeting.client, greeting.packet, greeting.key)
    else this.#enter(stranger, greeting.client, greeting.packet, greeting.user)
  }

  #stranger(raw: Socket): Stranger | undefined {
    const address = raw.remoteAddress ?? ''
    const leave = this.#places.stranger(address)
    if (leave === undefined) return undefined
    let timer: NodeJS.Timeout | undefined
    const wait = () => clearTimeout(timer)
    const hurry = () => {
      if (!raw.destroyed) timer = setTimeout(() => raw.destroy(), this.#options.limits.loginTimeout)
    }
    hurry()
    raw.on('close', wait)
    raw.on('close', leave)
    return { address, hurry, wait, leave }
  }

  #enter(stranger: Stranger, client: Socket, packet: Buffer, user: string): void {
    if (client.destroyed) return
    const { routes } = this.#options
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
    const leave = this.#places.login(tenantId, stranger.address)
    if (leave === undefined) {
      refuse(client, sqlRefusals.tooManyLogins)
      return
    }
    client.on('close', leave)
    this.#count(client, tenantId)
    const login = { client, packet, tenantId, stranger, leave }
    if (refusal === undefined) this.#open(login, route)
    else this.#wake(login)
  }

  #count(client: Socket, tenantId: string): void {
    const { live } = this.#options
    const meter = this.#options.meter.tenant(tenantId)
    const notLive = live.add(tenantId, () => client.destroy())
    meter.began()
    client.on('close', () => {
      notLive()
      meter.ended()
    })
  }

  #wake(login: Login): void {
    const { client, tenantId, stranger } = login
    const leaveWake = this.#places.wake(stranger.address)
    if (leaveWake === undefined) {
      refuse(client, sqlRefusals.tooManyLogins)
      return
    }
    client.on('close', leaveWake)
    stranger.wait()
    const leaveRoom = this.#options.waiting.wait(tenantId, {
      go: (awake) => {
        leaveWake()
        stranger.hurry()
        this.#open(login, awake)
      },
      refuse: (why) => refuse(client, sqlRefusal(why)),
    })
    client.on('close', leaveRoom)
  }

  #open(login: Login, route: Route): void {
    const { client, packet } = login
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
      this.#join(login, server, address)
    })
  }

  #join(login: Login, server: Socket, address: string): void {
    const { client, tenantId } = login
    const meter = this.#options.meter.tenant(tenantId)
    const start = new SessionStart()
    const passes = heldSession({
      client,
      server,
      letIn: (waiting) => this.#letIn(login, waiting),
      refuse: (refusal) => refuse(client, refusal),
    })
    joinSockets(client, server, (chunk) => {
      if (client.destroyed) return false
      meter.egress('other', chunk.length)
      const { letInAt, cancelKey } = start.look(chunk)
      if (cancelKey !== undefined) this.#remember(client, cancelKey, address)
      return passes(chunk, letInAt)
    })
  }

  /** The client is no stranger any longer, once there is room for its session. @param waiting is told when it had to wait for that */
  #letIn(login: Login, waiting: WaitingSession): 'let in' | 'waits' | SqlRefusal {
    const { client, tenantId, stranger } = login
    const route = this.#options.routes.get(tenantId)
    if (route === undefined) return sqlRefusals.unknownUser
    const gate = this.#options.quota.gate(route)
    const leaveSession = this.#places.session(tenantId)
    if (leaveSession === undefined) return sqlRefusals.tooManySessions
    const place = gate.open(() => {
      stranger.wait()
      return {
        go: () => {
          this.#begin(login, gate, leaveSession)
          waiting.goOn()
        },
        refuse: (why) => {
          leaveSession()
          waiting.refused(sqlRefusalOfSession(why))
        },
      }
    })
    if (place === undefined) {
      this.#begin(login, gate, leaveSession)
      return 'let in'
    }
    if (typeof place === 'function') {
      client.on('close', place)
      client.on('close', leaveSession)
      return 'waits'
    }
    leaveSession()
    return sqlRefusalOfSession(place)
  }

  #begin({ client, tenantId, stranger, leave }: Login, gate: TenantGate, leaveSession: () => void): void {
    const meter = this.#options.meter.tenant(tenantId)
    stranger.wait()
    stranger.leave()
    leave()
    meter.opened()
    client.on('close', () => {
      leaveSession()
      gate.closed()
      meter.closed()
    })
  }

  #remember(client: Socket, cancelKey: string, address: string): void {
    // A server that claims another session's key gets none of that session's cancellations.
    if (this.#cancelKeys.has(cancelKey)) return
    this.#cancelKeys.set(cancelKey, address)
    client.on('close', () => this.#cancelKeys.delete(cancelKey))
  }

  /** Passes the order on; whether it had an effect is never said, as with PostgreSQL itself. */
  #cancel(client: Socket, packet: Buffer, key: string): void {
    const address = this.#cancelKeys.get(key)
    if (address === undefined) {
      client.destroy()
      return
    }
    const server = this.#connect(address)
    const timer = setTimeout(() => server.destroy(), this.#options.limits.loginTimeout)
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
    const server = connect({
      host: address.slice(0, colon).replace(/^\[|\]$/g, ''),
      port: Number(address.slice(colon + 1)),
    })
    const timer = setTimeout(
      () => server.destroy(new Error('no connection in time')),
      this.#options.limits.connectTimeout,
    )
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
