// Limits the connections to all runtimes together, so that the rest of the gateway has file descriptors.
import { connect, type Socket } from 'node:net'
import { buildConnector } from 'undici'
import { NotConnectedError } from './failures.ts'

export class RuntimeSocketsError extends Error {
  readonly code = 'RUNTIME_SOCKETS'

  constructor() {
    super('The maximum number of connections to runtimes is open.')
  }
}

export class RuntimeSockets {
  readonly #max: number
  #open = 0
  /** The number of connections that were not opened because of the maximum. */
  rejected = 0

  constructor(max: number) {
    this.#max = max
  }

  get open(): number {
    return this.#open
  }

  /**
   * Creates a pool's connector.
   * @param timeoutMs milliseconds to connect
   * @param onConnected called with each connection that was accepted
   */
  connector(timeoutMs: number, onConnected: (socket: Socket) => void): buildConnector.connector {
    const connectNow = connector(timeoutMs)
    return (options, callback) => {
      if (this.#open >= this.#max) {
        this.rejected++
        queueMicrotask(() => callback(new RuntimeSocketsError(), null))
        return
      }
      this.#open++
      connectNow(options, (...outcome) => {
        const [error, socket] = outcome
        if (error === null) {
          socket.on('close', () => this.#open--)
          onConnected(socket)
        } else this.#open--
        callback(...outcome)
      })
    }
  }

  /**
   * Opens a connection outside of the pools.
   * @throws RuntimeSocketsError at the maximum
   */
  connect(host: string, port: number): Socket {
    if (this.#open >= this.#max) {
      this.rejected++
      throw new RuntimeSocketsError()
    }
    this.#open++
    return connect({ host, port }).on('close', () => this.#open--)
  }
}

/**
 * Creates undici's connector, whose every failure is a NotConnectedError.
 * @param timeoutMs milliseconds
 */
export function connector(timeoutMs: number): buildConnector.connector {
  const connectNow = buildConnector({ timeout: timeoutMs })
  return (options, callback) => {
    connectNow(options, (...outcome) => {
      const [error] = outcome
      if (error === null) callback(...outcome)
      else callback(new NotConnectedError(error), null)
    })
  }
}
