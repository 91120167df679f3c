// Stores the messages of a connection one after the other, so that others receive them in the order in which it sent them.

/** The messages that may wait, and their bytes. A message that is larger may wait alone. */
const maxMessages = 100
const maxBytes = 4 * 1024 * 1024

export class StoreQueue {
  #last: Promise<void> = Promise.resolve()
  #messages = 0
  #bytes = 0

  /**
   * Adds a message.
   * @param store stores it, and never throws
   * @returns false when too many messages wait
   */
  add(bytes: number, store: () => Promise<void>): boolean {
    if (this.#messages >= maxMessages || (this.#messages > 0 && this.#bytes + bytes > maxBytes)) return false
    this.#messages++
    this.#bytes += bytes
    this.#last = this.#last.then(store).then(() => {
      this.#messages--
      this.#bytes -= bytes
    })
    return true
  }
}
