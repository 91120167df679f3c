// Output of commands: data on standard output, as JSON or as tables, and progress on standard error.
import { formatMembers, formatTable, printable, type Column } from './table.ts'
import type { Terminal } from './terminal.ts'

/** Options of the output. */
export interface OutputOptions {
  readonly json: boolean
  readonly quiet: boolean
}

/** Writes the output of one command. */
export class Output {
  readonly #terminal: Terminal
  readonly #options: OutputOptions

  constructor(terminal: Terminal, options: OutputOptions) {
    this.#terminal = terminal
    this.#options = options
  }

  /** Whether the command has the option `--json`. */
  get isJson(): boolean {
    return this.#options.json
  }

  /** Writes one object: as JSON on one line, or as people read it; by default a line for each member. */
  one(body: object, format: () => string = () => formatMembers(body)): void {
    this.text(`${this.#options.json ? JSON.stringify(body) : format()}\n`)
  }

  /** Writes a list: as JSON an object in each line, or a table; `empty` is progress for people if there is no row. */
  rows<Row extends object>(rows: readonly Row[], columns: readonly Column<Row>[], empty: string): void {
    if (this.#options.json) for (const row of rows) this.text(`${JSON.stringify(row)}\n`)
    else if (rows.length === 0) this.progress(empty)
    else this.text(`${formatTable(rows, columns)}\n`)
  }

  /** Writes one entry of a list that does not end, as JSON on one line or as text without control characters. */
  line(entry: object, format: () => string): void {
    this.text(`${this.#options.json ? JSON.stringify(entry) : printable(format(), '\t')}\n`)
  }

  /** Writes data unchanged to standard output. */
  text(text: string | Uint8Array): void {
    this.#terminal.stdout.write(text)
  }

  /** Writes a line for people to standard error, except with `--quiet`. */
  progress(text: string): void {
    if (!this.#options.quiet) this.#terminal.stderr.write(`${printable(text)}\n`)
  }

  /** Replaces the present line of standard error on a terminal. Elsewhere it writes nothing. */
  progressLine(text: string, isLast = false): void {
    if (this.#options.quiet || this.#terminal.stderr.isTTY !== true) return
    this.#terminal.stderr.write(`\r${printable(text)}\u001b[K${isLast ? '\n' : ''}`)
  }
}
