// Several statements in one round trip: Bind and Execute for each, a single Sync for all. Postgres runs everything
// up to a Sync as one implicit transaction, so either all of it happens or nothing, and what `set_config(…, true)`
// set is gone afterwards. node-postgres accepts such a sequence as a "submittable".
import pg from 'pg'
import { toWire, type Result, type Row, type Statement } from './statement.ts'

/** What node-postgres hands a submittable; its own types leave the protocol messages out. */
export interface Wire {
  stream: { cork(): void; uncork(): void }
  parse(message: { text: string; name: string }): void
  bind(message: { statement: string; values: (string | Buffer | null)[] }): void
  describe(message: { type: 'P'; name: string }): void
  execute(message: { portal: string }): void
  close(message: { type: 'S'; name: string }): void
  sync(): void
  once(event: 'readyForQuery' | 'end', listener: (message?: { status?: string }) => void): void
  off(event: 'end', listener: () => void): void
}

interface FieldDescription {
  name: string
  dataTypeID: number
}

interface Field {
  name: string
  parse: (text: string) => unknown
}

/** A prepared statement as one connection knows it. */
interface Prepared {
  name: string
  fields: Field[] | undefined
}

const maxPrepared = 256

/** The statements that one connection has prepared, least recently used first. */
export class PreparedStatements {
  readonly #known = new Map<string, Prepared>()
  /** Names that must be closed before anything else: dropped ones, and ones whose Parse may have failed. */
  #closing: string[] = []
  #count = 0

  take(text: string): { prepared: Prepared; fresh: boolean } {
    const known = this.#known.get(text)
    if (known !== undefined) {
      this.#known.delete(text)
      this.#known.set(text, known)
      return { prepared: known, fresh: false }
    }
    const prepared: Prepared = { name: `s${++this.#count}`, fields: undefined }
    this.#known.set(text, prepared)
    if (this.#known.size > maxPrepared) {
      for (const [oldest, { name }] of this.#known) {
        this.#known.delete(oldest)
        this.#closing.push(name)
        break
      }
    }
    return { prepared, fresh: true }
  }

  drop(text: string): void {
    const prepared = this.#known.get(text)
    if (prepared === undefined) return
    this.#known.delete(text)
    this.#closing.push(prepared.name)
  }

  takeClosing(): string[] {
    const names = this.#closing
    this.#closing = []
    return names
  }
}

/** Thrown for whatever Postgres or the connection said; `reusable` tells whether the connection is clean. */
export class TripError extends Error {
  readonly reusable: boolean
  readonly sqlstate: string | undefined
  readonly constraint: string | undefined
  readonly detail: string | undefined
  readonly column: string | undefined
  readonly table: string | undefined

  constructor(cause: unknown, reusable: boolean) {
    super(cause instanceof Error ? cause.message : String(cause), { cause })
    this.name = 'TripError'
    this.reusable = reusable
    const error = cause instanceof pg.DatabaseError ? cause : undefined
    this.sqlstate = error?.code
    this.constraint = error?.constraint
    this.detail = error?.detail
    this.column = error?.column
    this.table = error?.table
  }
}

export class OneTrip {
  readonly done: Promise<Result[]>
  readonly #statements: readonly Statement[]
  readonly #prepared: PreparedStatements
  readonly #plan: Prepared[] = []
  readonly #fresh: string[] = []
  readonly #results: Result[] = []
  #rows: Row[] = []
  #settle: { resolve: (results: Result[]) => void; reject: (error: TripError) => void }

  constructor(statements: readonly Statement[], prepared: PreparedStatements) {
    this.#statements = statements
    this.#prepared = prepared
    const { promise, resolve, reject } = Promise.withResolvers<Result[]>()
    this.done = promise
    this.#settle = { resolve, reject }
  }

  submit(wire: Wire): Error | null {
    wire.stream.cork()
    try {
      for (const name of this.#prepared.takeClosing()) wire.close({ type: 'S', name })
      for (const statement of this.#statements) {
        const { prepared, fresh } = this.#prepare(statement)
        if (fresh) wire.parse({ text: statement.text, name: prepared.name })
        wire.bind({ statement: prepared.name, values: statement.values.map(toWire) })
        if (prepared.fields === undefined) wire.describe({ type: 'P', name: '' })
        wire.execute({ portal: '' })
        this.#plan.push(prepared)
      }
    } finally {
      // Without a Sync the connection would wait for ever, whatever went wrong above.
      wire.sync()
      wire.stream.uncork()
    }
    return null
  }

  #prepare(statement: Statement): { prepared: Prepared; fresh: boolean } {
    if (statement.prepare === 'once') return { prepared: { name: '', fields: undefined }, fresh: true }
    const taken = this.#prepared.take(statement.text)
    if (taken.fresh) this.#fresh.push(statement.text)
    return taken
  }

  handleRowDescription(message: { fields: FieldDescription[] }): void {
    const prepared = this.#plan[this.#results.length]
    if (prepared !== undefined) prepared.fields = message.fields.map(({ name, dataTypeID }) => ({ name, parse: parserOf(dataTypeID) }))
  }

  handleDataRow(message: { fields: (string | null)[] }): void {
    const fields = this.#plan[this.#results.length]?.fields ?? []
    const row: Row = {}
    for (let n = 0; n < fields.length; n++) {
      const field = fields[n]
      const text = message.fields[n]
      if (field !== undefined) row[field.name] = text === null || text === undefined ? null : field.parse(text)
    }
    this.#rows.push(row)
  }

  handleCommandComplete(message: { text: string }): void {
    // A command without rows is described by NoData, which node-postgres keeps to itself.
    const prepared = this.#plan[this.#results.length]
    if (prepared !== undefined) prepared.fields ??= []
    const count = /(\d+)$/.exec(message.text)
    this.#results.push({ rows: this.#rows, count: count === null ? 0 : Number(count[1]) })
    this.#rows = []
  }

  handleEmptyQuery(): void {
    this.handleCommandComplete({ text: '' })
  }

  handlePortalSuspended(): void {
    throw new Error('a portal without a row limit was suspended')
  }

  handleCopyInResponse(wire: Wire & { sendCopyFail(message: string): void }): void {
    wire.sendCopyFail('COPY is not offered here')
  }

  handleCopyData(): void {
    // Rows of COPY … TO STDOUT, which no statement of ours uses, are of no interest.
  }

  handleReadyForQuery(): void {
    this.#settle.resolve(this.#results)
  }

  /** From Postgres (ReadyForQuery follows, unless it ends the session) or from a connection that broke. */
  handleError(error: unknown, wire: Wire): void {
    // Statements parsed in this trip may or may not exist now.
    for (const text of this.#fresh) this.#prepared.drop(text)
    const failed = this.#statements[this.#results.length]
    if (failed !== undefined && isStalePlan(error)) this.#prepared.drop(failed.text)
    if (!(error instanceof pg.DatabaseError) || error.severity !== 'ERROR') {
      this.#settle.reject(new TripError(error, false))
      return
    }
    const ended = () => this.#settle.reject(new TripError(error, false))
    wire.once('end', ended)
    wire.once('readyForQuery', (message) => {
      wire.off('end', ended)
      this.#settle.reject(new TripError(error, message?.status === 'I'))
    })
  }
}

/** A prepared statement whose tables were changed under it: preparing it anew is all it takes. */
export function isStalePlan(error: unknown): boolean {
  return error instanceof pg.DatabaseError && error.code === '0A000' && /cached plan/.test(error.message)
}

const int8 = 20
const timestamptz = 1184

function parserOf(type: number): (text: string) => unknown {
  // Counts and sizes: all of ours lie far below 2^53.
  if (type === int8) return Number
  if (type === timestamptz) return isoTime
  // Its declared types know only the built-in ids, and call what a parser makes `any`.
  return (pg.types.getTypeParser as (id: number) => (text: string) => unknown)(type)
}

/**
 * Postgres' text of a time in ISO 8601 with milliseconds; null for what has no such form. Sessions run in UTC with ISO dates,
 * so that mostly only the blank, the milliseconds and the short offset differ: a listing has hundreds of them.
 */
export function isoTime(text: string): string | null {
  if (text.length <= 26 && text[4] === '-' && text.endsWith('+00')) return `${text.slice(0, 10)}T${text.slice(11, 19)}.${text.slice(20, -3).padEnd(3, '0')}Z`
  const time = new Date(text.replace(' ', 'T').replace(/\+00$/, 'Z'))
  return Number.isNaN(time.getTime()) ? null : time.toISOString()
}
