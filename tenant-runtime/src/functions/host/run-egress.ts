// Counts the bytes that a run sends to other hosts.

/**
 * Counts the bytes of a run's requests with `http_fetch`. A request is recorded before it is sent, so that a kill of the
 * runtime loses none, and counts when the connection to its host is established.
 */
export class RunEgress {
  readonly #record: (bytes: number) => Promise<void>
  #bytes = 0

  /** @param record stores the bytes that the run may have sent at most */
  constructor(record: (bytes: number) => Promise<void>) {
    this.#record = record
  }

  /** The bytes of the requests for which a connection was established. */
  get bytes(): number {
    return this.#bytes
  }

  /** Records a request that will be sent. @throws the error of `record`; then the request must not be sent */
  async expect(bytes: number): Promise<void> {
    await this.#record(this.#bytes + bytes)
  }

  /** Counts a request whose connection is established. */
  add(bytes: number): void {
    this.#bytes += bytes
  }
}
