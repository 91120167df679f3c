// One statement of a tenant's own SQL, whose rows are fetched in parts and bounded. The extended protocol accepts one statement
// only.
import type { Wire } from '../database/wire.ts'

/** A column of a result. */
export interface ResultColumn {
  name: string
  /** The type's OID. */
  type: number
}

/** The result of a statement: values as Postgres writes them. */
export interface BoundedResult {
  columns: ResultColumn[]
  rows: (string | null)[][]
  /** Postgres' command tag, such as `SELECT 3`; empty for a statement that was cut. */
  tag: string
  isTruncated: boolean
}

/** Bounds of a result. */
export interface ResultBounds {
  rows: number
  bytes: number
  /** Whether rows beyond the bounds are still computed and dropped, because the statement may change something by them. */
  runsToEnd: boolean
}

const fetchRows = 200

/** A statement that node-postgres submits. */
export class BoundedQuery {
  /** @throws the error of Postgres */
  readonly done: Promise<BoundedResult>
  readonly #text: string
  readonly #bounds: ResultBounds
  readonly #settle: { resolve: (result: BoundedResult) => void; reject: (error: Error) => void }
  readonly #result: BoundedResult = { columns: [], rows: [], tag: '', isTruncated: false }
  #wire: Wire | undefined
  #bytes = 0

  constructor(text: string, bounds: ResultBounds) {
    this.#text = text
    this.#bounds = bounds
    const { promise, resolve, reject } = Promise.withResolvers<BoundedResult>()
    this.done = promise
    this.#settle = { resolve, reject }
  }

  submit(wire: Wire): Error | null {
    this.#wire = wire
    wire.stream.cork()
    wire.parse({ text: this.#text, name: '' })
    wire.bind({ statement: '', values: [] })
    wire.describe({ type: 'P', name: '' })
    this.#execute(wire)
    wire.stream.uncork()
    return null
  }

  handleRowDescription({ fields }: { fields: { name: string; dataTypeID: number }[] }): void {
    this.#result.columns = fields.map(({ name, dataTypeID }) => ({ name, type: dataTypeID }))
  }

  handleDataRow({ fields }: { fields: (string | null)[] }): void {
    const { rows } = this.#result
    this.#bytes += fields.reduce((sum, field) => sum + 4 + Buffer.byteLength(field ?? ''), 0)
    if (this.#result.isTruncated || rows.length >= this.#bounds.rows || this.#bytes > this.#bounds.bytes)
      this.#result.isTruncated = true
    else rows.push(fields)
  }

  handlePortalSuspended(): void {
    if (this.#wire === undefined) return
    if (this.#result.isTruncated && !this.#bounds.runsToEnd) this.#wire.sync()
    else this.#execute(this.#wire)
  }

  handleCommandComplete({ text }: { text: string }): void {
    this.#result.tag = text
    this.#wire?.sync()
  }

  handleEmptyQuery(): void {
    this.#wire?.sync()
  }

  handleError(error: Error): void {
    this.#settle.reject(error)
  }

  handleReadyForQuery(): void {
    this.#settle.resolve(this.#result)
  }

  handleCopyInResponse(wire: { sendCopyFail(message: string): void }): void {
    wire.sendCopyFail('COPY FROM STDIN is not available here.')
  }

  handleCopyData(): void {
    this.#result.isTruncated = true
  }

  #execute(wire: Wire): void {
    wire.execute({ portal: '', rows: fetchRows })
    wire.flush()
  }
}
