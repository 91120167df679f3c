// What went wrong on the runtime's side → how the gateway says so, and whether asking again does no harm.
import { refusals, type Refusal } from '../errors.ts'

const unreachable = new Set([
  'UND_ERR_CONNECT_TIMEOUT',
  'UND_ERR_CLOSED',
  'UND_ERR_DESTROYED',
  'ECONNREFUSED',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'EADDRNOTAVAIL',
  'ENOTFOUND',
  'EAI_AGAIN',
])
const broken = new Set(['UND_ERR_SOCKET', 'ECONNRESET', 'EPIPE'])
/** Ours, and the system's: no file descriptor is left. */
const busy = new Set(['RUNTIME_SOCKETS', 'EMFILE', 'ENFILE'])
const late = new Set(['UND_ERR_HEADERS_TIMEOUT', 'UND_ERR_BODY_TIMEOUT'])

/** No byte of the request reached the runtime. */
export function isUnreachable(error: Error): boolean {
  return unreachable.has(codeOf(error))
}

/** The connection ended: perhaps an idle one that the runtime closed at that very moment. */
export function isBroken(error: Error): boolean {
  return broken.has(codeOf(error))
}

export function refusalFor(error: Error): Refusal {
  const code = codeOf(error)
  if (unreachable.has(code)) return refusals.runtimeUnreachable
  if (busy.has(code)) return refusals.gatewayBusy
  return late.has(code) ? refusals.runtimeTimeout : refusals.badGateway
}

function codeOf(error: Error): string {
  return 'code' in error && typeof error.code === 'string' ? error.code : ''
}
