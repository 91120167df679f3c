// Limits the output of a service in the log: a burst and a steady rate, of lines and of bytes.

export interface LogLimits {
  burstLines: number
  linesPerSecond: number
  burstBytes: number
  bytesPerSecond: number
}

/** Limits that admit all lines of a start, but not those of a tenant that makes Postgres log without end. */
export const defaultLogLimits: LogLimits = {
  burstLines: 2_000,
  linesPerSecond: 200,
  burstBytes: 4 * 1024 * 1024,
  bytesPerSecond: 256 * 1024,
}

export class LogBudget {
  readonly #limits: LogLimits
  readonly #elapsed: () => number
  #lines: number
  #bytes: number
  #filledAt: number

  /** @param elapsed milliseconds of a monotonic clock */
  constructor(limits: LogLimits, elapsed: () => number) {
    this.#limits = limits
    this.#elapsed = elapsed
    this.#lines = limits.burstLines
    this.#bytes = limits.burstBytes
    this.#filledAt = elapsed()
  }

  /** Takes one line from the budget. @returns false if it exceeds the budget */
  admits(bytes: number): boolean {
    this.#refill()
    if (this.#lines < 1 || this.#bytes < bytes) return false
    this.#lines -= 1
    this.#bytes -= bytes
    return true
  }

  #refill(): void {
    const now = this.#elapsed()
    const seconds = (now - this.#filledAt) / 1000
    this.#filledAt = now
    this.#lines = Math.min(this.#limits.burstLines, this.#lines + seconds * this.#limits.linesPerSecond)
    this.#bytes = Math.min(this.#limits.burstBytes, this.#bytes + seconds * this.#limits.bytesPerSecond)
  }
}
