// Sends a request that changes a cluster to Patroni's REST interface in the container of a member.
import type { Engine } from '../engines/index.ts'
import { patroniPort, patroniUser } from '../stacks/index.ts'

/** A request to Patroni. */
interface PatroniRequest {
  path: '/switchover' | '/reinitialize'
  body: object
  /** Password of the user of Patroni that may change the cluster. */
  password: string
}

interface PatroniResponse {
  status: number
  text: string
}

/**
 * Program that sends its standard input to Patroni and prints the response. Patroni responds to a switchover when the other member
 * is the primary, or after at most its TTL. The password is not an argument, because arguments are visible to all processes.
 */
const program = `exec 3<> /dev/tcp/127.0.0.1/${patroniPort}; cat >&3; exec timeout 40 cat <&3`
const maxTextLength = 200

/** Calls Patroni of a member. @throws the engine's error, and Error for a response that is not HTTP */
export async function callPatroni(
  engine: Pick<Engine, 'exec'>,
  tenantId: string,
  member: string,
  request: PatroniRequest,
  signal: AbortSignal,
): Promise<PatroniResponse> {
  const input = textOf(request)
  const { stdout } = await engine.exec(tenantId, member, ['bash', '-c', program], { input, signal })
  const [, status, text] = /^HTTP\/1\.[01] (\d{3}) .*?\r\n\r\n(.*)$/s.exec(stdout) ?? []
  if (status === undefined || text === undefined)
    throw new Error(`Patroni of ${member} responded with: ${stdout.slice(0, maxTextLength)}`)
  return { status: Number(status), text: text.trim().slice(0, maxTextLength) }
}

function textOf({ path, body, password }: PatroniRequest): string {
  const json = JSON.stringify(body)
  const head = [
    `POST ${path} HTTP/1.0`,
    'host: localhost',
    `authorization: Basic ${Buffer.from(`${patroniUser}:${password}`).toString('base64')}`,
    'content-type: application/json',
    `content-length: ${Buffer.byteLength(json)}`,
  ]
  return `${head.join('\r\n')}\r\n\r\n${json}`
}
