// What an engine is: the part that makes a stack of services exist, and tells what does exist.
import type { Stack } from '../stacks/stack.ts'
import type { Isolation } from '../tenants/tenant.ts'

export type EngineName = 'process' | 'docker' | 'swarm'

/** A service as an engine found it. */
export interface ObservedService {
  name: string
  specHash: string
  state: 'starting' | 'running' | 'stopped' | 'failed'
  /** ISO 8601, UTC. */
  observedAt: string
}

export interface Engine {
  readonly name: EngineName
  /** What exists of a stack, found by its labels. */
  observe(stackId: string, signal: AbortSignal): Promise<ObservedService[]>
  /** Makes what exists equal to the stack; may be called again at any point of an earlier, interrupted call. */
  converge(stack: Stack, signal: AbortSignal): Promise<void>
  /** Removes what exists of a stack; what is absent is no error. */
  remove(stackId: string, signal: AbortSignal): Promise<void>
}

const isolations: Record<EngineName, readonly Isolation[]> = {
  process: ['schema-per-tenant'],
  docker: ['schema-per-tenant'],
  swarm: ['schema-per-tenant'],
}

/** Isolation models that an engine can do, the strongest last. */
export function isolationsOf(engine: EngineName): readonly Isolation[] {
  return isolations[engine]
}
