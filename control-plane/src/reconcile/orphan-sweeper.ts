// Removes the remaining labelled objects of a deleted tenant, after a grace period as an orphan. Objects of a tenant
// that this control database never deleted are reported and not removed: the database may be an older copy.
import type { Clock } from '../platform/clock.ts'
import type { ObservedHost, Engine } from '../engines/index.ts'
import { stackOfVolume, volumePrefix } from '../stacks/index.ts'

interface OrphanSweeperDeps {
  engine: Engine
  clock: Clock
  graceSeconds: number
  /**
   * Returns the stacks that may exist: tenants' and the region's own. It is called again immediately before a removal.
   */
  known: () => Promise<ReadonlySet<string>>
  /** Returns those of the stacks whose tenants were deleted completely. */
  deleted: (stackIds: readonly string[]) => Promise<ReadonlySet<string>>
  /** Releases other resources of a removed stack. */
  removed: (stackId: string) => Promise<void>
  onRemoved: (stackId: string) => void
  onError: (error: Error) => void
}

export class OrphanSweeper {
  readonly #deps: OrphanSweeperDeps
  /** Time in milliseconds at which each stack was first seen without a tenant. */
  readonly #seen = new Map<string, number>()

  readonly #triedUnlabelled = new Set<string>()

  constructor(deps: OrphanSweeperDeps) {
    this.#deps = deps
  }

  /** Number of stacks without a tenant: those to be removed, and unknown ones. */
  get orphans(): number {
    return this.#seen.size
  }

  /** Sweeps a region. @param host everything of the region @returns how many stacks were removed */
  async sweep(host: ObservedHost, signal: AbortSignal): Promise<number> {
    const { engine, clock, graceSeconds, known, deleted, removed, onRemoved, onError } = this.#deps
    const now = clock.now().getTime()
    const tenants = await known()
    const orphans = stacksOf(host).filter((stack) => !tenants.has(stack))
    for (const stack of this.#seen.keys()) if (!orphans.includes(stack)) this.#seen.delete(stack)
    const nameless = stacksOfUnlabelled(host).filter((stack) => !tenants.has(stack))
    const removable =
      orphans.length + nameless.length === 0 ? new Set<string>() : await deleted([...orphans, ...nameless])
    await this.#removeUnlabelled(
      nameless.filter((stack) => removable.has(stack)),
      signal,
    )
    let count = 0
    for (const stack of orphans) {
      const since = this.#seen.get(stack) ?? now
      if (!this.#seen.has(stack) && !removable.has(stack)) {
        onError(
          new Error(
            `The engine has the stack ${stack}, whose tenant this control database never had. The stack is not removed.`,
          ),
        )
      }
      this.#seen.set(stack, since)
      if (!removable.has(stack)) continue
      if (now - since < graceSeconds * 1000 || signal.aborted) continue
      // The list may be older than a tenant.
      if ((await known()).has(stack)) continue
      try {
        await engine.remove(stack, signal)
        await removed(stack)
        this.#seen.delete(stack)
        onRemoved(stack)
        count++
      } catch (cause) {
        onError(
          new Error(`The remaining objects of ${stack} could not be removed. Their removal is retried.`, { cause }),
        )
      }
    }
    return count
  }

  /** Removes volumes that the engine created under the name of a deleted tenant. A volume that holds data stays. */
  async #removeUnlabelled(stacks: readonly string[], signal: AbortSignal): Promise<void> {
    const { engine, onError } = this.#deps
    // The engine needs long to measure whether a volume holds data, and the result does not change.
    for (const stack of stacks.filter((one) => !this.#triedUnlabelled.has(one))) {
      if (signal.aborted) return
      this.#triedUnlabelled.add(stack)
      await engine.remove(stack, signal).catch((cause: unknown) => {
        if (signal.aborted) {
          this.#triedUnlabelled.delete(stack)
          return
        }
        onError(new Error(`A volume named after ${stack} could not be removed. It is not removed again.`, { cause }))
      })
    }
  }
}

export function stacksOf({ containers, networks, volumes }: ObservedHost): string[] {
  return [...new Set([...containers, ...networks, ...volumes].map(({ labels }) => labels.stack))]
}

/** Returns the stacks after which a volume is named, and with which nothing on the host is labelled. */
function stacksOfUnlabelled(host: ObservedHost): string[] {
  const labelled = new Set(stacksOf(host))
  const named = host.unlabelledVolumes.map(stackOfVolume).filter((stack) => stack !== undefined)
  return [...new Set(named)].filter((stack) => !labelled.has(stack))
}

/** Returns the part of an observation that is about one stack. */
export function partOf(host: ObservedHost, stack: string): ObservedHost {
  const { containers, networks, volumes, unlabelledVolumes } = host
  const ofStack = ({ labels }: { labels: { stack: string } }) => labels.stack === stack
  return {
    ...host,
    containers: containers.filter(ofStack),
    networks: networks.filter(ofStack),
    volumes: volumes.filter(ofStack),
    unlabelledVolumes: unlabelledVolumes.filter((name) => name.startsWith(volumePrefix(stack))),
  }
}
