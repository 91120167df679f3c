// Translates failures of calls of the Engine API to Tenantry's codes and messages. The Engine's own text, which may contain
// paths and addresses, stays in the cause. Pure.
import { EngineError, type EngineErrorCode } from '../index.ts'
import { CallTimeout } from './with-timeout.ts'

interface Rejection {
  status: number
  text: string
}

/**
 * Known rejections; the first match wins. `text` is the Engine's, from Docker 20.10 and, if different, the sources of
 * later versions.
 */
const rejections: readonly { text: RegExp; code: EngineErrorCode; message: string }[] = [
  { text: /no space left on device|disk quota exceeded/i, code: 'DISK_FULL', message: 'the disk is full' },
  {
    text: /port is already allocated|bind: address already in use|ports are not available/i,
    code: 'PORT_TAKEN',
    message: 'a published port is in use',
  },
  {
    text: /pool overlaps with other one|cannot create network .* conflicts with network/i,
    code: 'SUBNET_TAKEN',
    message: 'the subnet overlaps an existing one',
  },
  {
    text: /non-overlapping IPv4 address pool|no available (IPv4 )?addresses|all predefined address pools/i,
    code: 'SUBNETS_EXHAUSTED',
    message: 'no address is available',
  },
  {
    text: /address already in use|requested address is not available/i,
    code: 'ADDRESS_TAKEN',
    message: 'the address is in use',
  },
  {
    text: /minimum memory limit|range of CPUs is from|unable to set memory limit|memory\S* .*device or resource busy/i,
    code: 'LIMITS_BEYOND_HOST',
    message: 'the host cannot enforce its limits',
  },
  { text: /no such image/i, code: 'IMAGE_MISSING', message: 'the image does not exist' },
  {
    text: /no such volume|(mount source|mounting volume) .*no such file or directory/i,
    code: 'VOLUME_MISSING',
    message: 'the volume does not exist',
  },
  {
    text: /client version .* is too new/i,
    code: 'ENGINE_UNREACHABLE',
    message: 'the version of the Docker Engine has changed',
  },
  {
    text: /not a swarm manager|swarm does not have a leader|not part of a swarm/i,
    code: 'NOT_A_MANAGER',
    message: 'the host is not a manager of a swarm with a leader',
  },
  // The Engine was killed while it started the container. The container still runs, and the Engine reports that it does not.
  { text: /id already in use/i, code: 'CONTAINER_LOST', message: 'the Docker Engine has lost track of it' },
  { text: /is not running|is paused/i, code: 'ENGINE_FAILED', message: 'it is not running' },
  { text: /is in use by task/i, code: 'ENGINE_FAILED', message: 'the swarm still attaches a container to it' },
  { text: /volume is in use/i, code: 'ENGINE_FAILED', message: 'it is in use' },
]

/** Returns the error of a failed call. @param doing action that was tried, for example `create container NAME` */
export function engineError(doing: string, cause: unknown): EngineError {
  if (cause instanceof EngineError) return cause
  const fail = (code: EngineErrorCode, why: string) => new EngineError(code, `Cannot ${doing}: ${why}.`, { cause })
  const rejection = readRejection(cause)
  if (rejection === undefined) {
    if (cause instanceof CallTimeout) return fail('ENGINE_UNREACHABLE', 'the Docker Engine did not respond in time')
    if (isConnectionError(cause)) return fail('ENGINE_UNREACHABLE', 'the Docker Engine cannot be reached')
    return fail('ENGINE_FAILED', 'the response cannot be read')
  }
  const known = rejections.find(({ text }) => text.test(rejection.text))
  if (known !== undefined) return fail(known.code, known.message)
  if (rejection.status === 404) return fail('NOT_FOUND', 'it does not exist')
  return fail('ENGINE_FAILED', `the Docker Engine rejected the request (${rejection.status})`)
}

/** Returns the HTTP status of the Engine's rejection that caused this error. */
export function statusOf(error: unknown): number | undefined {
  return error instanceof EngineError ? readRejection(error.cause)?.status : undefined
}

/** Returns the Engine's own text of a rejection. */
export function rejectionText(error: unknown): string {
  return (error instanceof EngineError ? readRejection(error.cause)?.text : undefined) ?? ''
}

/** Reads dockerode's error, which has the status, and the Engine's message after a prefix. */
function readRejection(cause: unknown): Rejection | undefined {
  if (!(cause instanceof Error) || !('statusCode' in cause) || typeof cause.statusCode !== 'number') return undefined
  return { status: cause.statusCode, text: cause.message.replace(/^\(HTTP code \d+\) \w+ - /, '').trim() }
}

/** Whether an error is one of a socket, a name server or TLS. */
function isConnectionError(cause: unknown): boolean {
  if (!(cause instanceof Error)) return false
  if (cause.name === 'AbortError' || cause.name === 'TimeoutError') return true
  return (
    'code' in cause &&
    typeof cause.code === 'string' &&
    /^(E[A-Z]+|EAI_[A-Z]+|ERR_(TLS|SSL|STREAM|SOCKET)_\w+|HPE_\w+|\w*CERT\w*|UNABLE_TO_\w+)$/.test(cause.code)
  )
}
