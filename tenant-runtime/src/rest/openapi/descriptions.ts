// The descriptions that were requested last. A large one takes much time, so it is made in parts, between which others are
// served, and only one is made at a time.
import { setImmediate as turn } from 'node:timers/promises'
import { RuntimeError } from '../../errors.ts'
import type { Catalog } from '../registry/catalog.ts'
import { describeCatalog } from './describe.ts'

/** The maximum size of a description, and of all that are kept. */
const maxBytes = 64 * 1024 * 1024
/** The size of the parts: less than a millisecond's work. */
const partLength = 64 * 1024

interface Description {
  catalog: Catalog
  basePath: string
  made: Promise<Buffer>
  bytes: number
}

export class Descriptions {
  /** All descriptions, in the order in which they were requested. */
  #known: Description[] = []
  #last: Promise<unknown> = Promise.resolve()

  /**
   * Returns the description of a catalog as JSON.
   * @throws RuntimeError ANSWER_TOO_LARGE
   */
  of(catalog: Catalog, basePath: string): Promise<Buffer> {
    const known = this.#known.find((one) => one.catalog === catalog && one.basePath === basePath)
    if (known !== undefined) return known.made
    const making = () => make(catalog, basePath)
    const description: Description = { catalog, basePath, made: this.#last.then(making, making), bytes: 0 }
    this.#known.push(description)
    this.#last = description.made.then(
      ({ length }) => this.#keep(description, length),
      () => this.#remove(description),
    )
    return description.made
  }

  /** Keeps a description that was made, and removes the oldest ones beyond the maximum. */
  #keep(description: Description, bytes: number): void {
    description.bytes = bytes
    let sum = this.#known.reduce((total, one) => total + one.bytes, 0)
    for (const oldest of [...this.#known]) {
      if (sum <= maxBytes) return
      if (oldest.bytes > 0) this.#remove(oldest)
      sum -= oldest.bytes
    }
  }

  #remove(description: Description): void {
    this.#known = this.#known.filter((one) => one !== description)
  }
}

async function make(catalog: Catalog, basePath: string): Promise<Buffer> {
  const parts: Buffer[] = []
  let part = ''
  let bytes = 0
  const endPart = () => {
    const made = Buffer.from(part)
    parts.push(made)
    bytes += made.length
    part = ''
    if (bytes > maxBytes) throw new RuntimeError('ANSWER_TOO_LARGE', 'The description of the interface is too large.')
  }
  for (const text of describeCatalog(catalog, basePath)) {
    part += text
    if (part.length < partLength) continue
    endPart()
    await turn()
  }
  endPart()
  return Buffer.concat(parts)
}
