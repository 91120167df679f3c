// The statements of a round trip: sends them as messages, as prepared statements where the connection knows them, and
// collects their results in order.
import { parserOf } from './column-parsers.ts'
import type { Prepared, PreparedStatements } from './prepared-statements.ts'
import { toWire, type Result, type Row, type Statement } from './statement.ts'
import { isStalePlan } from './round-trip-error.ts'
import type { Wire } from './wire.ts'

interface FieldDescription {
  name: string
  dataTypeID: number
}

export class SentStatements {
  /** The results of the completed statements. */
  readonly results: Result[] = []
  readonly #prepared: PreparedStatements
  readonly #statements: { text: string; prepared: Prepared }[] = []
  readonly #fresh: string[] = []
  #rows: Row[] = []

  constructor(prepared: PreparedStatements) {
    this.#prepared = prepared
  }

  /** Closes statements that are no longer prepared. Called before all other messages. */
  begin(wire: Wire): void {
    for (const name of this.#prepared.takeClosing()) wire.close({ type: 'S', name })
  }

  /** Sends a statement that runs to its end. */
  send(wire: Wire, statement: Statement): void {
    const prepared = this.open(wire, statement, '')
    if (prepared.fields === undefined) wire.describe({ type: 'P', name: '' })
    wire.execute({ portal: '' })
    this.#statements.push({ text: statement.text, prepared })
  }

  /** Binds a statement to a portal. Its rows go to the caller and are not part of the results. */
  open(wire: Wire, statement: Statement, portal: string): Prepared {
    const { prepared, fresh } = this.#take(statement)
    if (fresh) wire.parse({ text: statement.text, name: prepared.name })
    wire.bind({ portal, statement: prepared.name, values: statement.values.map(toWire) })
    return prepared
  }

  #take(statement: Statement): { prepared: Prepared; fresh: boolean } {
    if (statement.prepare === 'once') return { prepared: { name: '', fields: undefined }, fresh: true }
    const taken = this.#prepared.take(statement.text)
    if (taken.fresh) this.#fresh.push(statement.text)
    return taken
  }

  described(fields: FieldDescription[]): void {
    const prepared = this.#statements[this.results.length]?.prepared
    if (prepared !== undefined)
      prepared.fields = fields.map(({ name, dataTypeID }) => ({ name, parse: parserOf(dataTypeID) }))
  }

  row(texts: (string | null)[]): void {
    const fields = this.#statements[this.results.length]?.prepared.fields ?? []
    const row: Row = {}
    for (let n = 0; n < fields.length; n++) {
      const field = fields[n]
      const text = texts[n]
      if (field !== undefined) row[field.name] = text === null || text === undefined ? null : field.parse(text)
    }
    this.#rows.push(row)
  }

  /**
   * Completes a statement.
   * @param tag Postgres' command tag, which ends with the number of rows
   */
  completed(tag: string): void {
    // A command without rows is described by NoData, which node-postgres does not report.
    const prepared = this.#statements[this.results.length]?.prepared
    if (prepared !== undefined) prepared.fields ??= []
    const count = /(\d+)$/.exec(tag)
    this.results.push({ rows: this.#rows, count: count === null ? 0 : Number(count[1]) })
    this.#rows = []
  }

  /**
   * Drops statements whose state is unknown after a failed round trip: those parsed in it may or may not exist now, and a
   * stale one is useless. `opened` is the running statement, if it is not one of those sent.
   */
  failed(error: unknown, opened?: Statement): void {
    for (const text of this.#fresh) this.#prepared.drop(text)
    const failed = opened ?? this.#statements[this.results.length]
    if (failed !== undefined && isStalePlan(error)) this.#prepared.drop(failed.text)
  }
}
