// What went wrong with a call of the Engine API, in our codes. The Engine's own words (paths and addresses among them) are
// kept as the cause; the message is ours. Pure.
import { EngineError, type EngineErrorCode } from '../index.ts'
import { TimeUp } from './within.ts'

interface Rejection {
  status: number
  text: string
}

/** First match wins; `text` is the Engine's. Seen on Docker 20.10 and, where they differ, in the sources of later ones. */
const rejections: readonly { text: RegExp; code: EngineErrorCode; message: string }[] = [
  { text: /no space left on device|disk quota exceeded/i, code: 'DISK_FULL', message: 'its disk is full' },
  {
    text: /port is already allocated|bind: address already in use|ports are not available/i,
    code: 'PORT_TAKEN',
    message: 'a port that it publishes is taken',
  },
  {
    text: /pool overlaps with other one|cannot create network .* conflicts with network/i,
    code: 'SUBNET_TAKEN',
    message: 'its subnet overlaps one that exists',
  },
  {
    text: /non-overlapping IPv4 address pool|no available (IPv4 )?addresses|all predefined address pools/i,
    code: 'SUBNETS_EXHAUSTED',
    message: 'no address is left',
  },
  {
    text: /address already in use|requested address is not available/i,
    code: 'ADDRESS_TAKEN',
    message: 'its address is taken',
  },
  {
    text: /minimum memory limit|range of CPUs is from|unable to set memory limit|memory\S* .*device or resource busy/i,
    code: 'LIMITS_BEYOND_HOST',
    message: 'its limits are not possible here',
  },
  { text: /no such image/i, code: 'IMAGE_MISSING', message: 'its image is not there' },
  {
    text: /no such volume|(mount source|mounting volume) .*no such file or directory/i,
    code: 'VOLUME_MISSING',
    message: 'its volume is not there',
  },
  {
    text: /client version .* is too new/i,
    code: 'ENGINE_UNREACHABLE',
    message: 'the Docker Engine became another version',
  },
  // A kill of the Engine while it started the container, which runs below the Engine, and which it takes for one that doesn't.
  { text: /id already in use/i, code: 'CONTAINER_LOST', message: 'the Docker Engine has lost hold of it' },
  { text: /is not running|is paused/i, code: 'ENGINE_FAILED', message: 'it is not running' },
  { text: /volume is in use/i, code: 'ENGINE_FAILED', message: 'it is in use' },
]

/** @param doing what was tried, e.g. `create container NAME` */
export function engineError(doing: string, cause: unknown): EngineError {
  if (cause instanceof EngineError) return cause
  const fail = (code: EngineErrorCode, why: string) => new EngineError(code, `cannot ${doing}: ${why}`, { cause })
  const rejection = readRejection(cause)
  if (rejection === undefined) {
    if (cause instanceof TimeUp) return fail('ENGINE_UNREACHABLE', 'the Docker Engine did not answer in time')
    if (isConnectionError(cause)) return fail('ENGINE_UNREACHABLE', 'the Docker Engine cannot be reached')
    return fail('ENGINE_FAILED', 'its answer is not understood')
  }
  const known = rejections.find(({ text }) => text.test(rejection.text))
  if (known !== undefined) return fail(known.code, known.message)
  if (rejection.status === 404) return fail('NOT_FOUND', 'it is not there')
  return fail('ENGINE_FAILED', `the Docker Engine refused it (${rejection.status})`)
}

/** The HTTP status of a refusal by the Engine that became this error. */
export function statusOf(error: unknown): number | undefined {
  return error instanceof EngineError ? readRejection(error.cause)?.status : undefined
}

/** The Engine's own words about a refusal. */
export function wordsOf(error: unknown): string {
  return (error instanceof EngineError ? readRejection(error.cause)?.text : undefined) ?? ''
}

/** dockerode's errors carry the status, and the Engine's message after a text of their own. */
function readRejection(cause: unknown): Rejection | undefined {
  if (!(cause instanceof Error) || !('statusCode' in cause) || typeof cause.statusCode !== 'number') return undefined
  return { status: cause.statusCode, text: cause.message.replace(/^\(HTTP code \d+\) \w+ - /, '').trim() }
}

/** What sockets, name servers and TLS call their failures. */
function isConnectionError(cause: unknown): boolean {
  if (!(cause instanceof Error)) return false
  if (cause.name === 'AbortError' || cause.name === 'TimeoutError') return true
  return (
    'code' in cause &&
    typeof cause.code === 'string' &&
    /^(E[A-Z]+|ERR_(TLS|SSL|STREAM|SOCKET)_\w+|HPE_\w+|\w*CERT\w*|UNABLE_TO_\w+)$/.test(cause.code)
  )
}
