// The connections to all runtimes together: as many as leave file descriptors for the rest of the gateway.
import { connect, type Socket } from 'node:net'
import { buildConnector } from 'undici'
import { NotConnectedError } from './failures.ts'

export class RuntimeSocketsError extends Error {
  readonly code = 'RUNTIME_SOCKETS'

  constructor() {
    super('as many connections to runtimes are open as may be')
  }
}

export class RuntimeSockets {
  readonly #max: number
  #open = 0

  constructor(max: number) {
    this.#max = max
  }

  /** For a pool. @param timeout milliseconds to connect */
  connector(timeout: number): buildConnector.connector {
    const connectNow = connector(timeout)
    return (options, callback) => {
      if (this.#open >= this.#max) {
        queueMicrotask(() => callback(new RuntimeSocketsError(), null))
        return
      }
      this.#open++
      connectNow(options, (...outcome) => {
        const [error, socket] = outcome
        if (error === null) socket.on('close', () => this.#open--)
        else this.#open--
        callback(...outcome)
      })
    }
  }

  /** @throws RuntimeSocketsError */
  connect(host: string, port: number): Socket {
    if (this.#open >= this.#max) throw new RuntimeSocketsError()
    this.#open++
    return connect({ host, port }).on('close', () => this.#open--)
  }
}

/** undici's, whose every failure is a NotConnectedError. @param timeout milliseconds */
export function connector(timeout: number): buildConnector.connector {
  const connectNow = buildConnector({ timeout })
  return (options, callback) => {
    connectNow(options, (...outcome) => {
      const [error] = outcome
      if (error === null) callback(...outcome)
      else callback(new NotConnectedError(error), null)
    })
  }
}
