// Follows a log of a tenant's home while it has readers: reads page after page of what is final, and waits for more.
import { setTimeout as sleep } from 'node:timers/promises'
import { RoundTripError } from '../database/round-trip-error.ts'
import { RuntimeError } from '../errors.ts'
import { readLog, type LogSequence } from '../events/event-reader.ts'
import { TenantFeed } from '../events/tenant-feed.ts'
import type { Tenant } from '../tenancy/tenant.ts'

interface LogFollowerOptions {
  /** The sequence that numbers the log's rows. */
  sequence: LogSequence
  /** Returns the tenant as it is now; undefined after it was deleted. */
  tenantNow: () => Tenant | undefined
  /** Reads and distributes what follows `after`, up to `upTo`. Returns the position that it has reached. */
  read: (tenant: Tenant, after: bigint, upTo: bigint) => Promise<bigint>
  onError: (error: Error) => void
}

/** Milliseconds before a database that did not respond is queried again. */
const retryMs = 1_000
/** Milliseconds for which a start waits until the end of the log is final. Clients wait 10 s for the reply to a join. */
const finalMs = 8_000

export class LogFollower {
  readonly #options: LogFollowerOptions
  readonly #feed: TenantFeed
  #running: AbortController | undefined

  constructor(options: LogFollowerOptions) {
    this.#options = options
    this.#feed = new TenantFeed((mark) => readLog(this.#tenant(), mark, options.sequence))
  }

  get isRunning(): boolean {
    return this.#running !== undefined
  }

  /**
   * Reads the log from now on, unless it is read already.
   * @returns a position whose rows have all been committed. Later ones may have been, too
   * @throws RoundTripError, RuntimeError when the database does not respond
   */
  async start(): Promise<bigint> {
    await this.#feed.poll()
    // A position that is final: what runs now may still commit rows with lower numbers than the last one.
    const position = await this.#finalPosition()
    if (this.#running === undefined) void this.#run(position)
    return position
  }

  async #finalPosition(): Promise<bigint> {
    const late = AbortSignal.timeout(finalMs)
    try {
      return await this.#feed.beyond(-1n, late)
    } catch (cause) {
      if (!late.aborted) throw cause
      throw new RuntimeError('DATABASE_BUSY', 'A transaction of the tenant runs for too long.', { cause })
    }
  }

  stop(): void {
    this.#running?.abort()
    this.#running = undefined
  }

  /** Notifies the follower that the log may have new rows. */
  notify(): void {
    this.#feed.notify()
  }

  #tenant(): Tenant {
    const tenant = this.#options.tenantNow()
    if (tenant === undefined) throw new Error('The tenant was deleted.')
    return tenant
  }

  /** Reads until it is stopped. Never throws. */
  async #run(begin: bigint): Promise<void> {
    const running = new AbortController()
    this.#running = running
    const { signal } = running
    let after = begin
    while (!isOver(signal)) {
      try {
        const upTo = await this.#feed.beyond(after, signal)
        while (after < upTo && !isOver(signal)) after = await this.#options.read(this.#tenant(), after, upTo)
      } catch (error) {
        if (isOver(signal)) return
        if (this.#options.tenantNow() !== undefined && !(error instanceof RoundTripError))
          this.#options.onError(new Error('A log could not be read.', { cause: error }))
        await sleep(retryMs, undefined, { signal }).catch(() => undefined)
      }
    }
  }
}

/** The signal may abort during any wait. */
function isOver(signal: AbortSignal): boolean {
  return signal.aborted
}
