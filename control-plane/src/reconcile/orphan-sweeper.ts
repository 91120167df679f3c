// Removes what carries our label and is left of a tenant that was deleted: only after it was seen so for a grace time. What
// belongs to no tenant that this control database has ever deleted is told, and left: the database may be an older copy.
import type { Clock } from '../platform/clock.ts'
import type { ObservedHost, Engine } from '../engines/index.ts'
import { stackOfVolume, volumePrefix } from '../stacks/index.ts'

interface OrphanSweeperDeps {
  engine: Engine
  clock: Clock
  graceSeconds: number
  /** Stacks that may exist: tenants', and the region's own. Asked anew right before anything is removed. */
  known: () => Promise<ReadonlySet<string>>
  /** Those of the stacks whose tenants were deleted to the end. */
  deleted: (stackIds: readonly string[]) => Promise<ReadonlySet<string>>
  /** What was kept for the stack besides. */
  removed: (stackId: string) => Promise<void>
  onRemoved: (stackId: string) => void
  onError: (error: Error) => void
}

export class OrphanSweeper {
  readonly #deps: OrphanSweeperDeps
  /** Stack → when it was first seen without a tenant, in milliseconds. */
  readonly #seen = new Map<string, number>()

  readonly #triedUnlabelled = new Set<string>()

  constructor(deps: OrphanSweeperDeps) {
    this.#deps = deps
  }

  /** Seen without a tenant: to be removed, or nobody's that is known. */
  get waiting(): number {
    return this.#seen.size
  }

  /** @param host everything of the region @returns how many stacks were removed */
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
            `${stack} is on the engine, but this control database knows no such tenant and never deleted one; it is left as it is`,
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
        onError(new Error(`what is left of ${stack} could not be removed; it is tried again`, { cause }))
      }
    }
    return count
  }

  /** Volumes that the engine made in the name of a tenant which was deleted. One that holds something stays. */
  async #removeUnlabelled(stacks: readonly string[], signal: AbortSignal): Promise<void> {
    const { engine, onError } = this.#deps
    // Whether a volume holds something takes the engine long to find out, and an answer stays true.
    for (const stack of stacks.filter((one) => !this.#triedUnlabelled.has(one))) {
      this.#triedUnlabelled.add(stack)
      await engine.remove(stack, signal).catch((cause: unknown) => {
        onError(new Error(`a volume named after ${stack} could not be removed; it is left as it is`, { cause }))
      })
    }
  }
}

export function stacksOf({ containers, networks, volumes }: ObservedHost): string[] {
  return [...new Set([...containers, ...networks, ...volumes].map(({ labels }) => labels.stack))]
}

/** Stacks that nothing on the host is labelled with, but a volume is named after. */
function stacksOfUnlabelled(host: ObservedHost): string[] {
  const labelled = new Set(stacksOf(host))
  const named = host.unlabelledVolumes.map(stackOfVolume).filter((stack) => stack !== undefined)
  return [...new Set(named)].filter((stack) => !labelled.has(stack))
}

/** What of a host belongs to one stack. */
export function partOf(
  { containers, networks, volumes, unlabelledVolumes }: ObservedHost,
  stack: string,
): ObservedHost {
  const ofStack = ({ labels }: { labels: { stack: string } }) => labels.stack === stack
  return {
    containers: containers.filter(ofStack),
    networks: networks.filter(ofStack),
    volumes: volumes.filter(ofStack),
    unlabelledVolumes: unlabelledVolumes.filter((name) => name.startsWith(volumePrefix(stack))),
  }
}
