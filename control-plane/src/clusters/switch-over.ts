// Makes another member of a cluster the primary, through Patroni's REST interface in the container of a member.
import { type Engine, EngineError, isUnreachable } from '../engines/index.ts'
import { clusterMembers, patroniPort, patroniUser } from '../stacks/index.ts'

/** A switchover of a cluster from its primary to another member. */
interface SwitchoverCall {
  tenantId: string
  /** The primary at present. Patroni rejects the call when it is another member. */
  from: string
  to: string
  /** Password of the user of Patroni that may change the cluster. */
  password: string
}

/**
 * Program that sends its standard input to Patroni and prints the response. Patroni responds when the other member is the
 * primary, or after at most its TTL. The password is not an argument, because arguments are visible to all processes.
 */
const program = `exec 3<> /dev/tcp/127.0.0.1/${patroniPort}; cat >&3; exec timeout 40 cat <&3`
const maxReasonLength = 200

/**
 * Requests a switchover, and waits until Patroni reports its end.
 * @returns Patroni's reason when it rejected the switchover or did not complete it; undefined when the member is the primary
 * @throws EngineError UNHEALTHY if no member responds
 */
export async function switchOver(
  engine: Pick<Engine, 'exec'>,
  call: SwitchoverCall,
  signal: AbortSignal,
): Promise<string | undefined> {
  const input = requestOf(call)
  let failure: unknown
  // The primary acts on a request that it receives itself without delay.
  for (const member of [call.from, ...clusterMembers.filter((name) => name !== call.from)]) {
    try {
      const { stdout } = await engine.exec(call.tenantId, member, ['bash', '-c', program], { input, signal })
      const response = /^HTTP\/1\.[01] (\d{3}) .*?\r\n\r\n(.*)$/s.exec(stdout)
      if (response?.[1] === '200') return undefined
      if (response?.[2] !== undefined) return response[2].trim().slice(0, maxReasonLength)
      failure = new Error(`Patroni of ${member} responded with: ${stdout.slice(0, maxReasonLength)}`)
    } catch (cause) {
      signal.throwIfAborted()
      if (isUnreachable(cause)) throw cause
      failure = cause
    }
  }
  throw new EngineError('UNHEALTHY', "No member of the tenant's cluster accepts a switchover.", { cause: failure })
}

function requestOf({ from, to, password }: SwitchoverCall): string {
  const body = JSON.stringify({ leader: from, candidate: to })
  const head = [
    'POST /switchover HTTP/1.0',
    'host: localhost',
    `authorization: Basic ${Buffer.from(`${patroniUser}:${password}`).toString('base64')}`,
    'content-type: application/json',
    `content-length: ${Buffer.byteLength(body)}`,
  ]
  return `${head.join('\r\n')}\r\n\r\n${body}`
}
