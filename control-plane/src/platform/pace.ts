// The pace of work in bulk, so that it leaves room for requests on the same machine.
import type { Clock } from './clock.ts'

/** A shorter wait is left for later: a timer takes longer than that. */
const minWaitMilliseconds = 5
/** The maximum delay of a timer that is caught up on. */
const maxLateMilliseconds = 20

/** The maximum number of bytes per second of one task, whatever the sizes of its chunks are. */
export class Pace {
  readonly #bytesPerMillisecond: number
  readonly #clock: Pick<Clock, 'now' | 'sleep'>
  readonly #signal: AbortSignal
  /** When the next bytes may pass, in milliseconds since 1970. */
  #next = 0

  /** @param signal ends the waits, which then reject with its reason */
  constructor(bytesPerSecond: number, clock: Pick<Clock, 'now' | 'sleep'>, signal: AbortSignal) {
    this.#bytesPerMillisecond = bytesPerSecond / 1_000
    this.#clock = clock
    this.#signal = signal
  }

  /** Waits until these bytes may follow the earlier ones. A longer time in which nothing passed is not caught up on. */
  async pass(bytes: number): Promise<void> {
    const now = this.#clock.now().getTime()
    const wait = this.#next - now
    this.#next = Math.max(now - maxLateMilliseconds, this.#next) + bytes / this.#bytesPerMillisecond
    if (wait >= minWaitMilliseconds) await this.#clock.sleep(wait, this.#signal)
  }
}

/** Yields the chunks, no faster than the pace. @param weight the bytes of work for each byte of a chunk */
export async function* paced<T extends Uint8Array>(
  chunks: AsyncIterable<T>,
  pace: Pace | undefined,
  weight = 1,
): AsyncGenerator<T, undefined> {
  for await (const chunk of chunks) {
    await pace?.pass(weight * chunk.length)
    yield chunk
  }
}
