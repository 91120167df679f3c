// Applies changes of rows to the copy. Nothing of the tenant runs there, and no key refers from one table to another, so only
// the changes of the same table need their order: what is inserted into a table waits, and becomes one statement.
import type pg from 'pg'
import { identifier } from '../platform/identifiers.ts'
import { changeSql, insertSql } from './change-sql.ts'
import { MoveError } from './move-error.ts'
import type { Cell, Message, Relation } from './pgoutput.ts'

interface Target {
  tenantId: string
  /** The session that changes the service's tables, and the one that changes the tenant's. */
  admin: pg.Client
  tenant: pg.Client
  /** Names of the service's tables. */
  serviceTables: ReadonlySet<string>
}

type Change = Exclude<Message, { type: 'relation' | 'begin' | 'commit' }>

/** The maxima of a statement. Postgres accepts 65,535 values. */
const maxValues = 20_000
const maxRows = 1_000
const maxCharacters = 2 ** 20

interface Waiting {
  relation: Relation
  rows: Cell[][]
  characters: number
}

/** The tables whose changes a transaction of the sessions has applied before. */
export interface Skipped {
  service: boolean
  tenant: boolean
}

/** Applies the changes of one transaction of the sessions. */
export class Applier {
  readonly #target: Target
  readonly #relations = new Map<number, Relation>()
  readonly #waiting = new Map<number, Waiting>()
  #rows = 0
  #skipped: Skipped = { service: false, tenant: false }

  constructor(target: Target) {
    this.#target = target
  }

  /** Rows that were changed, or wait to be inserted. */
  get rows(): number {
    return this.#rows
  }

  /** Uses the description of a table for the changes that follow. */
  async describe(relation: Relation): Promise<void> {
    await this.#insert(relation.id)
    const { rows } = await this.#target.admin.query<{ name: string }>(
      `select attname as name from pg_catalog.pg_attribute
       where attrelid = pg_catalog.to_regclass($1) and attidentity = 'a'`,
      [`${identifier(this.#target.tenantId)}.${identifier(relation.name)}`],
    )
    const always = new Set(rows.map(({ name }) => name))
    const columns = relation.columns.map((column) => (always.has(column.name) ? { ...column, isAlways: true } : column))
    this.#relations.set(relation.id, { ...relation, columns })
  }

  /** Leaves out the changes that follow which concern these tables. */
  skip(skipped: Skipped): void {
    this.#skipped = skipped
  }

  /** Applies a change. @throws MoveError for one that does not fit the copy */
  async apply(message: Change): Promise<void> {
    if (message.type === 'other') return
    if (message.type === 'truncate') return this.#truncate(message)
    const relation = this.#relation(message.relationId)
    if (this.#isSkipped(relation)) return
    this.#rows++
    if (message.type === 'insert') return this.#add(relation, message.row)
    await this.#insert(relation.id)
    await this.#run(relation, changeSql(this.#target.tenantId, relation, message), 1)
  }

  /** Applies what still waits. @throws MoveError, as `apply` does */
  async flush(): Promise<void> {
    for (const id of [...this.#waiting.keys()]) await this.#insert(id)
  }

  async #add(relation: Relation, row: Cell[]): Promise<void> {
    const waiting = this.#waiting.get(relation.id) ?? { relation, rows: [], characters: 0 }
    this.#waiting.set(relation.id, waiting)
    waiting.rows.push(row)
    waiting.characters += row.reduce((sum, cell) => sum + (cell?.length ?? 0), 0)
    const isFull =
      waiting.rows.length >= maxRows ||
      (waiting.rows.length + 1) * relation.columns.length > maxValues ||
      waiting.characters > maxCharacters
    if (isFull) await this.#insert(relation.id)
  }

  async #insert(id: number): Promise<void> {
    const waiting = this.#waiting.get(id)
    if (waiting === undefined) return
    this.#waiting.delete(id)
    const { relation, rows } = waiting
    await this.#run(relation, insertSql(this.#target.tenantId, relation, rows), rows.length)
  }

  async #truncate({ relationIds, restartsIdentity }: Extract<Change, { type: 'truncate' }>): Promise<void> {
    const truncated = relationIds.map((id) => this.#relation(id)).filter((relation) => !this.#isSkipped(relation))
    // What waits for these tables would be deleted.
    for (const { id } of truncated) {
      this.#rows -= this.#waiting.get(id)?.rows.length ?? 0
      this.#waiting.delete(id)
    }
    for (const session of new Set(truncated.map((relation) => this.#sessionOf(relation)))) {
      const names = truncated
        .filter((relation) => this.#sessionOf(relation) === session)
        .map(({ name }) => `only ${identifier(this.#target.tenantId)}.${identifier(name)}`)
      await session.query(`truncate ${names.join(', ')}${restartsIdentity ? ' restart identity' : ''}`)
    }
  }

  async #run(
    relation: Relation,
    { text, values }: { text: string; values: (string | null)[] },
    expected: number,
  ): Promise<void> {
    const { rowCount } = await this.#sessionOf(relation)
      .query(text, values)
      .catch((cause: unknown) => {
        throw new MoveError(`A change of the table "${relation.name}" could not be applied to the copy.`, { cause })
      })
    if (rowCount !== expected)
      throw new MoveError(
        `A change of ${expected === 1 ? 'a row' : `${expected} rows`} of the table "${relation.name}" ` +
          `concerns ${rowCount ?? 0} rows of the copy.`,
        { isLasting: true },
      )
  }

  #relation(id: number): Relation {
    const relation = this.#relations.get(id)
    if (relation === undefined) throw new Error(`The relation ${id} was not described.`)
    return relation
  }

  #isSkipped({ name }: Relation): boolean {
    return this.#target.serviceTables.has(name) ? this.#skipped.service : this.#skipped.tenant
  }

  #sessionOf({ name }: Relation): pg.Client {
    return this.#target.serviceTables.has(name) ? this.#target.admin : this.#target.tenant
  }
}
