// What went wrong on the runtime's side → how the gateway says so, and whether asking again does no harm.
import { rejections, type Rejection } from '../errors.ts'

/** No connection came about, for whatever reason: its name is not known, nobody listens, no network leads there. */
export class NotConnectedError extends Error {
  /** The cause's. */
  readonly code: string

  constructor(cause: Error) {
    super(`no connection: ${cause.message}`, { cause })
    this.code = codeOf(cause)
  }
}

/** The route names the runtime no longer, and its pool took nothing more. */
const released = new Set(['UND_ERR_CLOSED', 'UND_ERR_DESTROYED'])
const broken = new Set(['UND_ERR_SOCKET', 'ECONNRESET', 'EPIPE'])
/** Ours, and the system's: no file descriptor is left. */
const busy = new Set(['RUNTIME_SOCKETS', 'EMFILE', 'ENFILE'])
const late = new Set(['UND_ERR_HEADERS_TIMEOUT', 'UND_ERR_BODY_TIMEOUT'])

/** No byte of the request reached the runtime. */
export function isUnreachable(error: Error): boolean {
  const code = codeOf(error)
  return (error instanceof NotConnectedError && !busy.has(code)) || released.has(code)
}

/** The connection ended: perhaps an idle one that the runtime closed at that very moment. */
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
