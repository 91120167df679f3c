// The door to the tenants' databases: finds the tenant by the SQL user, and passes bytes to the Postgres that has them.
import { connect, createServer, type Server, type Socket } from 'node:net'
import { createSecureContext } from 'node:tls'
import { isTenantId, type Route } from '@tenantry/contract'
import { rejectionOfPhase, rejections } from '../errors.ts'
import { joinSockets } from '../forward/join-sockets.ts'
import type { LiveConnections } from '../forward/live-connections.ts'
import type { Limits } from '../limits.ts'
import type { Meter } from '../meter/meter.ts'
import type { Quota, TenantGate } from '../quota/quota.ts'
import type { RouteTable } from '../routes/route-table.ts'
import type { WaitingRoom } from '../waiting/waiting-room.ts'
import { fatalMessage, sqlRejection, sqlRejectionOfSession, sqlRejections, type SqlRejection } from './fatal.ts'
import { greet } from './greeting.ts'
import { heldSession, type WaitingSession } from './held-session.ts'
import { SessionSlots, type Leave } from './session-slots.ts'
import { SessionStart } from './session-start.ts'

interface PostgresProxyOptions {
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
interface Outsider {
  address: string
  /** Starts and stops the time after which it is cut. */
  expedite: () => void
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
  unauthenticated: Outsider
  /** Of its place among the tenant's logins. */
  leave: Leave
}

/** Milliseconds that a refused client has to take its answer. */
const lastWordsMilliseconds = 1_000

export class PostgresProxy {
  /** Made, not yet listening. */
  readonly server: Server
  readonly port: number
  readonly #options: PostgresProxyOptions
  readonly #secureContext: ReturnType<typeof createSecureContext> | undefined
  readonly #clients = new Set<Socket>()
  readonly #slots: SessionSlots
  /** Where the session with this cancel key is, `host:port`. */
  readonly #cancelKeys = new Map<string, string>()

  /** @throws when the certificate or its key is none */
  constructor(options: PostgresProxyOptions) {
    this.#options = options
    this.port = options.port
    this.#slots = new SessionSlots(options.limits)
    this.#secureContext = options.tls === undefined ? undefined : createSecureContext(options.tls)
    this.server = createServer({ noDelay: true }, (client) => void this.#serve(client))
    this.server.maxConnections = options.limits.sqlSessions + options.limits.sqlUnauthenticated
  }

  /** Ends every session. */
  close(): void {
    this.server.close()
    for (const client of this.#clients) client.destroy()
  }

  async #serve(raw: Socket): Promise<void> {
    const { limits } = this.#options
    raw.on('error', () => raw.destroy())
    const unauthenticated = this.#unauthenticated(raw)
    if (unauthenticated === undefined) {
      raw.destroy()
      return
    }
    this.#clients.add(raw)
    raw.on('close', () => this.#clients.delete(raw))
    const greeting = await greet(raw, limits.startupBytes, this.#secureContext)
    if (greeting.kind === 'gone') raw.destroy()
    else if (greeting.kind === 'refused') reject(greeting.client, greeting.rejection)
    else if (greeting.kind === 'cancel') this.#cancel(greeting.client, greeting.packet, greeting.key)
    else this.#enter(unauthenticated, greeting.client, greeting.packet, greeting.user)
  }

  #unauthenticated(raw: Socket): Outsider | undefined {
    const address = raw.remoteAddress ?? ''
    const leave = this.#slots.unauthenticated(address)
    if (leave === undefined) return undefined
    let timer: NodeJS.Timeout | undefined
    const wait = () => clearTimeout(timer)
    const expedite = () => {
      if (!raw.destroyed) timer = setTimeout(() => raw.destroy(), this.#options.limits.loginTimeout)
    }
    expedite()
    raw.on('close', wait)
    raw.on('close', leave)
    return { address, expedite, wait, leave }
  }

  #enter(unauthenticated: Outsider, client: Socket, packet: Buffer, user: string): void {
    if (client.destroyed) return
    const { routes } = this.#options
    const tenantId = tenantOfUser(user)
    const route = tenantId === undefined ? undefined : routes.get(tenantId)
    if (tenantId === undefined || route?.postgres === undefined) {
      reject(client, sqlRejections.unknownUser)
      return
    }
    const rejection = rejectionOfPhase(route)
    if (rejection !== undefined && rejection !== rejections.tenantWaking) {
      reject(client, sqlRejection(rejection))
      return
    }
    const leave = this.#slots.login(tenantId, unauthenticated.address)
    if (leave === undefined) {
      reject(client, sqlRejections.tooManyLogins)
      return
    }
    client.on('close', leave)
    this.#count(client, tenantId)
    const login = { client, packet, tenantId, unauthenticated, leave }
    if (rejection === undefined) this.#open(login, route)
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
    const { client, tenantId, unauthenticated } = login
    const leaveWake = this.#slots.wake(unauthenticated.address)
    if (leaveWake === undefined) {
      reject(client, sqlRejections.tooManyLogins)
      return
    }
    client.on('close', leaveWake)
    unauthenticated.wait()
    const leaveRoom = this.#options.waiting.wait(tenantId, {
      go: (awake) => {
        leaveWake()
        unauthenticated.expedite()
        this.#open(login, awake)
      },
      reject: (why) => reject(client, sqlRejection(why)),
    })
    client.on('close', leaveRoom)
  }

  #open(login: Login, route: Route): void {
    const { client, packet } = login
    if (client.destroyed) return
    const { postgres: address } = route
    if (address === undefined) {
      reject(client, sqlRejections.unknownUser)
      return
    }
    const server = this.#connect(address)
    const clientGone = () => server.destroy()
    const failed = () => reject(client, sqlRejections.unreachable)
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
      admit: (waiting) => this.#admit(login, waiting),
      reject: (rejection) => reject(client, rejection),
    })
    joinSockets(client, server, (chunk) => {
      if (client.destroyed) return false
      meter.egress('other', chunk.length)
      const { admittedAt, cancelKey } = start.poll(chunk)
      if (cancelKey !== undefined) this.#remember(client, cancelKey, address)
      return passes(chunk, admittedAt)
    })
  }

  /** The client is no stranger any longer, once there is room for its session. @param waiting is told when it had to wait for that */
  #admit(login: Login, waiting: WaitingSession): 'admitted' | 'waits' | SqlRejection {
    const { client, tenantId, unauthenticated } = login
    const route = this.#options.routes.get(tenantId)
    if (route === undefined) return sqlRejections.unknownUser
    const gate = this.#options.quota.gate(route)
    const leaveSession = this.#slots.session(tenantId)
    if (leaveSession === undefined) return sqlRejections.tooManySessions
    const slot = gate.open(() => {
      unauthenticated.wait()
      return {
        go: () => {
          this.#begin(login, gate, leaveSession)
          waiting.goOn()
        },
        reject: (why) => {
          leaveSession()
          waiting.refused(sqlRejectionOfSession(why))
        },
      }
    })
    if (slot === undefined) {
      this.#begin(login, gate, leaveSession)
      return 'admitted'
    }
    if (typeof slot === 'function') {
      client.on('close', slot)
      client.on('close', leaveSession)
      return 'waits'
    }
    leaveSession()
    return sqlRejectionOfSession(slot)
  }

  #begin({ client, tenantId, unauthenticated, leave }: Login, gate: TenantGate, leaveSession: () => void): void {
    const meter = this.#options.meter.tenant(tenantId)
    unauthenticated.wait()
    unauthenticated.leave()
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

function reject(client: Socket, rejection: SqlRejection): void {
  client.end(fatalMessage(rejection))
  // Unread bytes at the end would cost the answer.
  client.resume()
  setTimeout(() => client.destroy(), lastWordsMilliseconds).unref()
}
