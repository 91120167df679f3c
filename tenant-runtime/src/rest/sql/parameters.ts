// The values of a statement in the making, and the names of its tables. Values never stand in the text.
import type { Value } from '../../database/statement.ts'

export class Parameters {
  readonly values: Value[] = []
  #tables = 0

  /** The place of a value: `$1`. */
  add(value: Value): string {
    return `$${this.values.push(value)}`
  }

  /** A name that no other table of the statement has. */
  table(): string {
    return `t${this.#tables++}`
  }
}
