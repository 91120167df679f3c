// Makes another member of a cluster the primary, through Patroni.
import { type Engine, EngineError, isUnreachable } from '../engines/index.ts'
import { clusterMembers } from '../stacks/index.ts'
import { callPatroni } from './patroni-call.ts'

/** A switchover of a cluster from its primary to another member. */
interface SwitchoverCall {
  tenantId: string
  /** The primary at present. Patroni rejects the call when it is another member. */
  from: string
  to: string
  /** Names of the members for Patroni, where they differ from those of the services. */
  identities?: Readonly<Record<string, string>> | undefined
  /** Password of the user of Patroni that may change the cluster. */
  password: string
}

/**
 * Requests a switchover, and waits until Patroni reports its end.
 * @returns Patroni's reason when it rejected the switchover or did not complete it; undefined when the member is the primary
 * @throws EngineError UNHEALTHY if no member responds
 */
export async function switchOver(
  engine: Pick<Engine, 'exec'>,
  { tenantId, from, to, password, identities = {} }: SwitchoverCall,
  signal: AbortSignal,
): Promise<string | undefined> {
  const body = { leader: identities[from] ?? from, candidate: identities[to] ?? to }
  const request = { path: '/switchover', body, password } as const
  let failure: unknown
  // The primary acts on a request that it receives itself without delay.
  for (const member of [from, ...clusterMembers.filter((name) => name !== from)]) {
    try {
      const { status, text } = await callPatroni(engine, tenantId, member, request, signal)
      return status === 200 ? undefined : text
    } catch (cause) {
      signal.throwIfAborted()
      if (isUnreachable(cause)) throw cause
      failure = cause
    }
  }
  throw new EngineError('UNHEALTHY', 'No member of the cluster accepts a switchover.', { cause: failure })
}
