// Maps failures of a runtime's connection to the gateway's rejections, and decides whether another attempt is harmless.
import { rejections, type Rejection } from '../errors.ts'

/** The error of a connection that could not be opened: an unknown host name, no listener, no network route. */
export class NotConnectedError extends Error {
  /** The code of the cause. */
  readonly code: string

  constructor(cause: Error) {
    super(`The connection could not be opened: ${cause.message}`, { cause })
    this.code = codeOf(cause)
  }
}

/** The error of requests to a runtime that is gone without having closed its connections. */
export class RuntimeVanishedError extends Error {
  readonly code = 'RUNTIME_VANISHED'

  constructor() {
    super('The runtime accepts no connections any more.')
  }
}

/** Codes of a pool that was closed because no route names its runtime any more. */
const released = new Set(['UND_ERR_CLOSED', 'UND_ERR_DESTROYED'])
const broken = new Set(['UND_ERR_SOCKET', 'ECONNRESET', 'EPIPE', 'RUNTIME_VANISHED'])
/** The gateway's own limit, and the operating system's limits of file descriptors. */
const busy = new Set(['RUNTIME_SOCKETS', 'EMFILE', 'ENFILE'])
const silent = new Set(['UND_ERR_CONNECT_TIMEOUT', 'ETIMEDOUT', 'EHOSTUNREACH', 'ENETUNREACH'])
const late = new Set(['UND_ERR_HEADERS_TIMEOUT', 'UND_ERR_BODY_TIMEOUT'])

/** Whether no byte of the request reached the runtime. */
export function isUnreachable(error: Error): boolean {
  const code = codeOf(error)
  return (error instanceof NotConnectedError && !busy.has(code)) || released.has(code)
}

/** Whether a connection was neither accepted nor rejected, so that its host may be gone. Causes on this machine do not count. */
export function isSilent(error: Error): boolean {
  return silent.has(codeOf(error))
}

/** Whether the connection broke, perhaps an idle one that the runtime was just closing. */
export function isBroken(error: Error): boolean {
  return !(error instanceof NotConnectedError) && broken.has(codeOf(error))
}

export function rejectionFor(error: Error): Rejection {
  const code = codeOf(error)
  if (busy.has(code)) return rejections.gatewayBusy
  if (isUnreachable(error)) return rejections.runtimeUnreachable
  return late.has(code) ? rejections.runtimeTimeout : rejections.badGateway
}

function codeOf(error: Error): string {
  return 'code' in error && typeof error.code === 'string' ? error.code : ''
}
