// What the programs in containers have received of the published state, each with its own delay. After a restart they know nothing
// until they have read it again.
import type { Chance } from './chance.ts'
import type { ControlDatabase, Published } from './control-database.ts'
import type { Docker } from './docker.ts'
import type { Container } from './docker-objects.ts'
import type { Scheduler } from './scheduler.ts'

interface WatchesOptions {
  /** The Engines on which the programs run. */
  dockers: readonly Docker[]
  database: ControlDatabase
  scheduler: Scheduler
  chance: Chance
  /** Whether the program in a container receives the state. */
  isWatcher: (container: Container) => boolean
  /** Probability that a watch breaks and delivers a change late. */
  watchFaults: () => number
}

/**
 * Starts the watches.
 * @returns a function that returns what a container has received, by tenant ID; undefined before it has received any
 */
export function createWatches({ dockers, database, scheduler, chance, isWatcher, watchFaults }: WatchesOptions) {
  /** State that each run of a container has received, by tenant ID. */
  const known = new Map<string, Map<string, Published>>()
  const keyOf = ({ id, run }: Container) => `${id} ${run}`

  const deliver = (container: Container, tenantId: string) => {
    const received = known.get(keyOf(container))
    const now = database.published(tenantId)
    if (now === undefined) received?.delete(tenantId)
    else received?.set(tenantId, now)
  }
  const read = (container: Container) => {
    if (!isWatcher(container)) return
    const { run } = container
    scheduler.after(chance.between(5, 300), () => {
      if (container.run !== run) return
      known.set(keyOf(container), new Map())
      for (const tenantId of database.tenants.keys()) deliver(container, tenantId)
    })
  }
  for (const docker of dockers) docker.starts.add(read)
  database.listen(({ kind, subject: tenantId }) => {
    if (kind !== 'published') return
    for (const docker of dockers)
      for (const container of docker.containers.values()) {
        if (!known.has(keyOf(container)) || !docker.isRunning(container)) continue
        scheduler.after(chance.happens(watchFaults()) ? chance.between(500, 5_000) : chance.between(1, 60), () =>
          deliver(container, tenantId),
        )
      }
  })
  return (container: Container): ReadonlyMap<string, Published> | undefined => known.get(keyOf(container))
}
