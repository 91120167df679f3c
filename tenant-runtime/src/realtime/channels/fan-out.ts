// Sends messages to all channels of a topic, in order, in slices: a topic with thousands of channels must not occupy the
// process at once.
import type { FrameByVersion } from '../protocol/encode.ts'

/** A receiver of messages. */
export interface Receiver {
  /** The number of the last message that was sent in the tenant when the receiver joined. */
  readonly joinedAt: number
  receive(frames: FrameByVersion): void
}

interface Delivery<R extends Receiver> {
  number: number
  receivers: Iterable<R>
  isFor: (receiver: R) => boolean
  frames: FrameByVersion
  bytes: number
}

/** The number of receivers after which others have their turn. */
const sliceSize = 500
/** The maximum of messages, and of their bytes, that wait. */
const maxWaiting = 1_000
const maxWaitingBytes = 16 * 1024 * 1024

/** The messages of one tenant. */
export class FanOut<R extends Receiver> {
  readonly #waiting: Delivery<R>[] = []
  #bytes = 0
  #isRunning = false
  #number = 0

  /** The number of the last message. A receiver that joins now receives later ones. */
  get number(): number {
    return this.#number
  }

  /**
   * Whether there is room for a message of some bytes. One that is sent all the same is never dropped.
   */
  hasRoom(bytes: number): boolean {
    // One message alone always has room.
    return this.#waiting.length === 0 || (this.#waiting.length < maxWaiting && this.#bytes + bytes <= maxWaitingBytes)
  }

  /**
   * Sends a message to the receivers for which `isFor` is true.
   * @param bytes the length of the message
   */
  send(receivers: Iterable<R>, isFor: (receiver: R) => boolean, frames: FrameByVersion, bytes: number): void {
    this.#waiting.push({ number: ++this.#number, receivers, isFor, frames, bytes })
    this.#bytes += bytes
    if (!this.#isRunning) this.#run(this.#deliveries())
  }

  #run(deliveries: Iterator<R>): void {
    this.#isRunning = true
    for (let count = 0; count < sliceSize; count++) {
      if (deliveries.next().done !== true) continue
      this.#isRunning = false
      return
    }
    setImmediate(() => this.#run(deliveries))
  }

  /** Delivers to one receiver after the other. */
  *#deliveries(): Generator<R> {
    for (let delivery = this.#waiting[0]; delivery !== undefined; delivery = this.#waiting[0]) {
      const { number, receivers, isFor, frames, bytes } = delivery
      for (const receiver of receivers) {
        if (receiver.joinedAt < number && isFor(receiver)) receiver.receive(frames)
        yield receiver
      }
      this.#waiting.shift()
      this.#bytes -= bytes
    }
  }
}
