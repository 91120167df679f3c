// The Postgres proxy: finds the tenant by the SQL user, and passes bytes to the Postgres that has the tenant's database.
import { connect, createServer, type Server, type Socket } from 'node:net'
import { isTenantId, type Route } from '@tenantry/contract'
import type { ServerCertificate } from '../certificates/server-certificate.ts'
import type { BlockedAddresses } from '../clients/blocked-addresses.ts'
import { rejectionOfPhase, rejections } from '../errors.ts'
import { joinSockets } from '../forward/join-sockets.ts'
import type { LiveConnections } from '../forward/live-connections.ts'
import type { Limits } from '../limits.ts'
import type { Meter } from '../meter/meter.ts'
import type { Quota, TenantGate } from '../quota/quota.ts'
import type { RouteTable } from '../routes/route-table.ts'
import type { WaitingRoom } from '../waiting/waiting-room.ts'
import { endpointOf } from './endpoint.ts'
import { fatalMessage, sqlRejection, sqlRejectionOfSession, sqlRejections, type SqlRejection } from './fatal.ts'
import { greet } from './greeting.ts'
import { heldSession, type WaitingSession } from './held-session.ts'
import { SessionSlots, type Leave } from './session-slots.ts'
import { SessionStart } from './session-start.ts'
import { movedPacket, readOnlyPacket } from './startup-packet.ts'

interface PostgresProxyOptions {
  /** The port; 0 selects a free one. */
  port: number
  routes: RouteTable
  waiting: WaitingRoom
  meter: Meter
  quota: Quota
  live: LiveConnections
  blocked: BlockedAddresses
  limits: Limits
  /** The certificate of new sessions. Without it the proxy does not use TLS. */
  certificate?: ServerCertificate | undefined
  /** Whether logins without TLS are rejected. */
  requireTls: boolean
}

/** A connection whose client no Postgres has admitted yet. */
interface UnauthenticatedClient {
  address: string
  /** Starts the timer after which the connection is destroyed, and stops it. */
  startTimer: () => void
  stopTimer: () => void
  /** Releases the slot for unauthenticated clients. */
  leave: Leave
}

/** A client that is about to authenticate with its tenant's Postgres. */
interface Login {
  client: Socket
  /** The client's startup packet. */
  packet: Buffer
  tenantId: string
  unauthenticated: UnauthenticatedClient
  /** Releases the slot among the tenant's logins. */
  leave: Leave
}

/** The milliseconds for which a rejected connection stays open so that the client can read the error. */
const rejectionReadMilliseconds = 1_000

export class PostgresProxy {
  /** The server, which does not listen yet. */
  readonly server: Server
  readonly port: number
  readonly #options: PostgresProxyOptions
  readonly #clients = new Set<Socket>()
  readonly #slots: SessionSlots
  /** The addresses of the servers with open sessions, as in the routes, by the sessions' cancel keys. */
  readonly #cancelKeys = new Map<string, string>()

  constructor(options: PostgresProxyOptions) {
    this.#options = options
    this.port = options.port
    this.#slots = new SessionSlots(options.limits)
    this.server = createServer({ noDelay: true }, (client) => void this.#serve(client))
    this.server.maxConnections = options.limits.sqlSessions + options.limits.sqlUnauthenticated
  }

  /** Stops listening and ends every session. */
  close(): void {
    this.server.close()
    for (const client of this.#clients) client.destroy()
  }

  /**
   * Closes the connections of clients whose addresses are chosen.
   * @returns their number
   */
  closeOf(isChosen: (clientAddress: string) => boolean): number {
    const chosen = [...this.#clients].filter(({ remoteAddress = '' }) => isChosen(remoteAddress))
    for (const client of chosen) client.destroy()
    return chosen.length
  }

  async #serve(raw: Socket): Promise<void> {
    const { blocked, limits, certificate, requireTls } = this.#options
    raw.on('error', () => raw.destroy())
    if (blocked.rejects(raw.remoteAddress ?? '')) {
      raw.resetAndDestroy()
      return
    }
    const unauthenticated = this.#unauthenticated(raw)
    if (unauthenticated === undefined) {
      raw.destroy()
      return
    }
    this.#clients.add(raw)
    raw.on('close', () => this.#clients.delete(raw))
    const greeting = await greet(raw, limits.startupBytes, { context: certificate?.context, isRequired: requireTls })
    if (greeting.kind === 'gone') raw.destroy()
    else if (greeting.kind === 'rejected') reject(greeting.client, greeting.rejection)
    else if (greeting.kind === 'cancel') this.#cancel(greeting.client, greeting.packet, greeting.key)
    else this.#enter(unauthenticated, greeting.client, greeting.packet, greeting.user)
  }

  #unauthenticated(raw: Socket): UnauthenticatedClient | undefined {
    const address = raw.remoteAddress ?? ''
    const leave = this.#slots.unauthenticated(address)
    if (leave === undefined) return undefined
    let timer: NodeJS.Timeout | undefined
    const stopTimer = () => clearTimeout(timer)
    const startTimer = () => {
      if (!raw.destroyed) timer = setTimeout(() => raw.destroy(), this.#options.limits.loginTimeout)
    }
    startTimer()
    raw.on('close', stopTimer)
    raw.on('close', leave)
    return { address, startTimer, stopTimer, leave }
  }

  #enter(unauthenticated: UnauthenticatedClient, client: Socket, packet: Buffer, user: string): void {
    if (client.destroyed) return
    const { routes, quota } = this.#options
    const tenantId = tenantOfUser(user)
    const route = tenantId === undefined ? undefined : routes.get(tenantId)
    if (tenantId === undefined || route?.postgres === undefined) {
      reject(client, sqlRejections.unknownUser)
      return
    }
    const phase = rejectionOfPhase(route)
    const rejection =
      phase === undefined || phase === rejections.tenantWaking ? (quota.gate(route).spent ?? phase) : phase
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
    const removeLive = live.add(tenantId, () => client.destroy())
    meter.began()
    client.on('close', () => {
      removeLive()
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
    unauthenticated.stopTimer()
    const leaveRoom = this.#options.waiting.wait(tenantId, {
      go: (awake) => {
        leaveWake()
        unauthenticated.startTimer()
        this.#open(login, awake)
      },
      reject: (why) => reject(client, sqlRejection(why)),
    })
    client.on('close', leaveRoom)
  }

  #open(login: Login, route: Route): void {
    const { client } = login
    if (client.destroyed) return
    const { read_only: copies, home_database: home } = route
    const changed = copies === undefined ? undefined : readOnlyPacket(login.packet, copies)
    const moved = home === undefined ? undefined : movedPacket(login.packet, home)
    const packet = changed ?? moved ?? login.packet
    const address = changed === undefined ? route.postgres : copies?.postgres
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
      const { admittedAt, cancelKey } = start.read(chunk)
      if (cancelKey !== undefined) this.#storeCancelKey(client, cancelKey, address)
      return passes(chunk, admittedAt)
    })
  }

  /**
   * Admits the session of a client that its Postgres has admitted, if there is a slot for it.
   * @param waiting receives the decision when the session has to wait
   */
  #admit(login: Login, waiting: WaitingSession): 'admitted' | 'waits' | SqlRejection {
    const { client, tenantId, unauthenticated } = login
    const route = this.#options.routes.get(tenantId)
    if (route === undefined) return sqlRejections.unknownUser
    const gate = this.#options.quota.gate(route)
    const leaveSession = this.#slots.session(tenantId)
    if (leaveSession === undefined) return sqlRejections.tooManySessions
    const slot = gate.open(() => {
      unauthenticated.stopTimer()
      return {
        go: () => {
          this.#begin(login, gate, leaveSession)
          waiting.proceed()
        },
        reject: (why) => {
          leaveSession()
          waiting.reject(sqlRejectionOfSession(why))
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
    unauthenticated.stopTimer()
    unauthenticated.leave()
    leave()
    meter.opened()
    client.on('close', () => {
      leaveSession()
      gate.closed()
      meter.closed()
    })
  }

  #storeCancelKey(client: Socket, cancelKey: string, address: string): void {
    // A server that reports another session's key receives none of that session's cancellations.
    if (this.#cancelKeys.has(cancelKey)) return
    this.#cancelKeys.set(cancelKey, address)
    client.on('close', () => this.#cancelKeys.delete(cancelKey))
  }

  /** Forwards a cancellation. As with PostgreSQL itself, the client does not learn whether it had an effect. */
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

  /**
   * Connects within `connectTimeout`, or destroys the socket with an error.
   * @param address as in the route
   */
  #connect(address: string): Socket {
    const server = connect(endpointOf(address))
    const timer = setTimeout(
      () => server.destroy(new Error('The connection was not established in time.')),
      this.#options.limits.connectTimeout,
    )
    const connected = () => clearTimeout(timer)
    server.on('connect', connected)
    server.on('close', connected)
    return server
  }
}

/** Returns the tenant of the one user that may log in here: `t_<hex>_admin`. */
function tenantOfUser(user: string): string | undefined {
  const tenantId = user.endsWith('_admin') ? user.slice(0, -'_admin'.length) : ''
  return isTenantId(tenantId) ? tenantId : undefined
}

function reject(client: Socket, rejection: SqlRejection): void {
  client.end(fatalMessage(rejection))
  // Unread bytes at the end would reset the connection, and the client would lose the error.
  client.resume()
  setTimeout(() => client.destroy(), rejectionReadMilliseconds).unref()
}
