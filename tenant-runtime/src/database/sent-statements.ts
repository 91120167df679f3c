// The statements of a trip on their way: made into messages, prepared ones where the connection knows them, and their
// results gathered in order as they come back.
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
  /** Of the statements that have come to their end. */
  readonly results: Result[] = []
  readonly #prepared: PreparedStatements
  readonly #sent: { text: string; prepared: Prepared }[] = []
  readonly #fresh: string[] = []
  #rows: Row[] = []

  constructor(prepared: PreparedStatements) {
    this.#prepared = prepared
  }

  /** First of all: what is prepared no longer is closed. */
  begin(wire: Wire): void {
    for (const name of this.#prepared.takeClosing()) wire.close({ type: 'S', name })
  }

  /** Has it run to its end. */
  send(wire: Wire, statement: Statement): void {
    const prepared = this.open(wire, statement, '')
    if (prepared.fields === undefined) wire.describe({ type: 'P', name: '' })
    wire.execute({ portal: '' })
    this.#sent.push({ text: statement.text, prepared })
  }

  /** Binds it to a portal; what that gives is the caller's, and none of the results. */
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
    const prepared = this.#sent[this.results.length]?.prepared
    if (prepared !== undefined)
      prepared.fields = fields.map(({ name, dataTypeID }) => ({ name, parse: parserOf(dataTypeID) }))
  }

  row(texts: (string | null)[]): void {
    const fields = this.#sent[this.results.length]?.prepared.fields ?? []
    const row: Row = {}
    for (let n = 0; n < fields.length; n++) {
      const field = fields[n]
      const text = texts[n]
      if (field !== undefined) row[field.name] = text === null || text === undefined ? null : field.parse(text)
    }
    this.#rows.push(row)
  }

  /** @param tag as Postgres tells of a command's end, with the number of rows last */
  completed(tag: string): void {
    // A command without rows is described by NoData, which node-postgres keeps to itself.
    const prepared = this.#sent[this.results.length]?.prepared
    if (prepared !== undefined) prepared.fields ??= []
    const count = /(\d+)$/.exec(tag)
    this.results.push({ rows: this.#rows, count: count === null ? 0 : Number(count[1]) })
    this.#rows = []
  }

  /**
   * Drops what a failed round trip leaves in doubt: statements parsed in it may or may not exist now, and a stale one is
   * no good. `opened` is the statement that was being run, if it was none of those sent.
   */
  failed(error: unknown, opened?: Statement): void {
    for (const text of this.#fresh) this.#prepared.drop(text)
    const failed = opened ?? this.#sent[this.results.length]
    if (failed !== undefined && isStalePlan(error)) this.#prepared.drop(failed.text)
  }
}
