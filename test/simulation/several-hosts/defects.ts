// Defects that the simulation of several hosts plants in the engine and must find.
import type { Engine } from '#control-plane/engines/engine.ts'

export interface HostDefects {
  /** All services of a tenant's cluster that differ are changed at once. */
  changesAllAtOnce?: boolean
  /** Containers and volumes are removed from former hosts before other members have the data. */
  removesFormerAtOnce?: boolean
  /** The removal of a stack ends after its containers. */
  removesHalf?: boolean
  /** Containers keep an address that another one has. */
  keepsSharedAddresses?: boolean
  /** A member of etcd gets an empty volume without a new ID. */
  replacesNoMember?: boolean
}

export function spoilEngine(
  { changesAllAtOnce, removesFormerAtOnce, removesHalf }: HostDefects,
  engine: Engine,
): Engine {
  return {
    ...engine,
    converge: (stack, signal, edge, held, areReplaced) =>
      engine.converge(
        stack,
        signal,
        edge,
        changesAllAtOnce === true && stack.id.startsWith('t_') ? undefined : held,
        removesFormerAtOnce === true || areReplaced === true,
      ),
    remove: async (stackId, signal, edge) => {
      const half = new Error('the containers are removed')
      const end = removesHalf === true ? () => Promise.reject(half) : edge
      await engine.remove(stackId, signal, end).catch((error: unknown) => {
        if (error !== half) throw error
      })
    },
  }
}
