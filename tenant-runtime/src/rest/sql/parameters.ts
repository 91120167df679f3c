// The values of a statement during its construction, and the names of its tables. The text never contains values.
import type { Value } from '../../database/statement.ts'

export class Parameters {
  readonly values: Value[] = []
  #tables = 0

  /** Adds a value and returns its placeholder, such as `$1`. */
  add(value: Value): string {
    return `$${this.values.push(value)}`
  }

  /** Returns a name that no other table of the statement has. */
  table(): string {
    return `t${this.#tables++}`
  }
}
