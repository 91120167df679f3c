// Agents of HTTP clients whose connections go through the egress proxy.
import { Agent, type ClientRequest, type ClientRequestArgs } from 'node:http'
import { Agent as TlsAgent } from 'node:https'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { connect as connectTls } from 'node:tls'
import type { Tunnel } from './egress-proxy.ts'

/** Called with the connection, or the error. */
type Created = (error: Error | null, stream: Duplex) => void

const connectMilliseconds = 10_000

/** Creates the agents for both schemes. @param maxRequests the maximum number of requests in progress, and so of connections */
export function createTunnelAgents(tunnel: Tunnel, maxRequests: number): { httpAgent: Agent; httpsAgent: TlsAgent } {
  const options = { keepAlive: true, maxSockets: maxRequests, maxFreeSockets: maxRequests }
  const turns = new Turns(maxRequests)
  const open = (
    { host, port }: ClientRequestArgs,
    secure: (socket: Socket) => Duplex,
    created: Created | undefined,
  ): void => {
    tunnel(host ?? '', Number(port), AbortSignal.timeout(connectMilliseconds)).then(
      (socket) => created?.(null, secure(socket)),
      // After an error, the agent does not use the stream.
      (error: unknown) => (created as ((error: unknown) => void) | undefined)?.(error),
    )
  }

  class PlainTunnelAgent extends Agent {
    override addRequest(request: ClientRequest, args: ClientRequestArgs): void {
      turns.take(request, () => super.addRequest(request, args))
    }

    override createConnection(...[target, created]: Parameters<Agent['createConnection']>): undefined {
      open(target, (socket) => socket, created)
    }
  }

  class TlsTunnelAgent extends TlsAgent {
    override addRequest(request: ClientRequest, args: ClientRequestArgs): void {
      turns.take(request, () => super.addRequest(request, args))
    }

    override createConnection(...[target, created]: Parameters<TlsAgent['createConnection']>): undefined {
      const { host, servername } = target
      open(target, (socket) => connectTls({ socket, host: host ?? '', servername: servername ?? '' }), created)
    }
  }

  return { httpAgent: new PlainTunnelAgent(options), httpsAgent: new TlsTunnelAgent(options) }
}

/**
 * The turns of requests. Node's agents do not count connections that are being made, so that many requests at the same moment would
 * open more than the maximum.
 */
class Turns {
  readonly #max: number
  #inProgress = 0
  readonly #waiting: (() => void)[] = []

  constructor(max: number) {
    this.#max = max
  }

  take(request: ClientRequest, begin: () => void): void {
    const start = () => {
      this.#inProgress++
      if (request.closed) {
        this.#end()
        return
      }
      // The agent gets the connection back right after this event.
      request.once('close', () => setImmediate(() => this.#end()))
      begin()
    }
    if (this.#inProgress < this.#max) start()
    else this.#waiting.push(start)
  }

  #end(): void {
    this.#inProgress--
    this.#waiting.shift()?.()
  }
}
