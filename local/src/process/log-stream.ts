// Copies a service's output to the log. Tenants can make services write any output, so a line is cut at 64 KB, the rate
// is limited, and no output is an error.
import type { Readable } from 'node:stream'
import type { Logger } from 'pino'
import { LineSplitter, type SplitLine } from '@tenantry/contract'
import { defaultLogLimits, LogBudget, type LogLimits } from './log-budget.ts'
import { readServiceLine } from './log-line.ts'

const maxLogLineBytes = 64 * 1024
/** Delay between the first dropped line and its report. */
const reportMilliseconds = 1_000

export class ServiceLog {
  readonly #service: string
  readonly #log: Logger
  readonly #budget: LogBudget
  #dropped = 0

  constructor(service: string, log: Logger, limits: LogLimits = defaultLogLimits, elapsed = () => performance.now()) {
    this.#service = service
    this.#log = log.child({ service })
    this.#budget = new LogBudget(limits, elapsed)
  }

  /**
   * Copies a stream's lines to the log. Resolves when the stream has ended or failed.
   * @param onLine called with the text of each line that is not empty, dropped ones included
   */
  follow(stream: Readable, onLine: (text: string) => void = () => undefined): Promise<void> {
    const splitter = new LineSplitter(maxLogLineBytes)
    return new Promise((resolve) => {
      stream.on('data', (chunk: Buffer) => {
        for (const line of splitter.push(chunk)) this.#take(line, onLine)
      })
      // A broken pipe means that the process has ended, which the supervisor observes itself.
      stream.on('error', () => undefined)
      stream.once('close', () => {
        const last = splitter.end()
        if (last !== undefined) this.#take(last, onLine)
        resolve()
      })
    })
  }

  #take({ bytes, isCut }: SplitLine, onLine: (text: string) => void): void {
    const text = bytes.toString().replace(/\r$/, '')
    if (text === '') return
    onLine(text)
    const { level, message, details } = readServiceLine(this.#service, text)
    if (!this.#log.isLevelEnabled(level)) return
    if (!this.#budget.admits(bytes.length)) {
      this.#drop()
      return
    }
    this.#log[level](isCut ? { ...details, cut: true } : details, message)
  }

  /** Counts a dropped line. The first one schedules a report of all that follow shortly. */
  #drop(): void {
    this.#dropped++
    if (this.#dropped > 1) return
    setTimeout(() => {
      this.#log.warn(
        { dropped: this.#dropped },
        `${this.#dropped} lines of the service were dropped, because it writes too many.`,
      )
      this.#dropped = 0
    }, reportMilliseconds).unref()
  }
}
