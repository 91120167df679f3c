// Reads the messages of Postgres' output plugin `pgoutput`, protocol version 1 (PostgreSQL, "Logical Replication Message
// Formats"). Pure.

/** A column of a row: text, null, or undefined for a large value that an update has not changed. */
export type Cell = string | null | undefined

export interface Relation {
  id: number
  name: string
  /** Whether the old row identifies a changed row, rather than a key. */
  isFull: boolean
  /** `isAlways`: the column is `generated always as identity`, so that no update may set it. The log does not contain that. */
  columns: { name: string; isKey: boolean; isAlways?: boolean }[]
}

export type Message =
  /** `commitLsn` is the position of the record that commits the transaction. */
  | { type: 'begin'; commitLsn: string; xid: number }
  | { type: 'commit'; endLsn: string }
  | { type: 'relation'; relation: Relation }
  | { type: 'insert'; relationId: number; row: Cell[] }
  /** `old` has the former key, or the former row of a table whose replica identity is FULL; absent if the key is the same. */
  | { type: 'update'; relationId: number; old: Cell[] | undefined; row: Cell[] }
  | { type: 'delete'; relationId: number; old: Cell[] }
  | { type: 'truncate'; relationIds: number[]; restartsIdentity: boolean }
  | { type: 'other' }

class Reader {
  readonly #data: Buffer
  #at = 1

  constructor(data: Buffer) {
    this.#data = data
  }

  byte(): number {
    return this.#data.readUInt8(this.#at++)
  }

  letter(): string {
    return String.fromCharCode(this.byte())
  }

  int16(): number {
    this.#at += 2
    return this.#data.readUInt16BE(this.#at - 2)
  }

  int32(): number {
    this.#at += 4
    return this.#data.readUInt32BE(this.#at - 4)
  }

  /** Reads a position of the write-ahead log as Postgres prints it. */
  lsn(): string {
    return `${this.int32().toString(16)}/${this.int32().toString(16)}`
  }

  skip(bytes: number): void {
    this.#at += bytes
  }

  text(): string {
    const end = this.#data.indexOf(0, this.#at)
    const text = this.#data.toString('utf8', this.#at, end)
    this.#at = end + 1
    return text
  }

  row(): Cell[] {
    return Array.from({ length: this.int16() }, () => {
      const kind = this.letter()
      if (kind === 'n') return null
      if (kind === 'u') return undefined
      const length = this.int32()
      this.#at += length
      return this.#data.toString('utf8', this.#at - length, this.#at)
    })
  }
}

/** Reads one message. */
export function readMessage(data: Buffer): Message {
  const reader = new Reader(data)
  switch (String.fromCharCode(data[0] ?? 0)) {
    case 'B': {
      const commitLsn = reader.lsn()
      reader.skip(8)
      return { type: 'begin', commitLsn, xid: reader.int32() }
    }
    case 'C':
      reader.skip(9)
      return { type: 'commit', endLsn: reader.lsn() }
    case 'R':
      return { type: 'relation', relation: readRelation(reader) }
    case 'I': {
      const relationId = reader.int32()
      reader.skip(1)
      return { type: 'insert', relationId, row: reader.row() }
    }
    case 'U': {
      const relationId = reader.int32()
      const old = reader.letter() === 'N' ? undefined : reader.row()
      if (old !== undefined) reader.skip(1)
      return { type: 'update', relationId, old, row: reader.row() }
    }
    case 'D': {
      const relationId = reader.int32()
      reader.skip(1)
      return { type: 'delete', relationId, old: reader.row() }
    }
    case 'T': {
      const count = reader.int32()
      const flags = reader.byte()
      const relationIds = Array.from({ length: count }, () => reader.int32())
      return { type: 'truncate', relationIds, restartsIdentity: (flags & 2) !== 0 }
    }
    default:
      return { type: 'other' }
  }
}

function readRelation(reader: Reader): Relation {
  const id = reader.int32()
  reader.text()
  const name = reader.text()
  const isFull = reader.letter() === 'f'
  const columns = Array.from({ length: reader.int16() }, () => {
    const isKey = (reader.byte() & 1) !== 0
    const column = { name: reader.text(), isKey }
    reader.skip(8)
    return column
  })
  return { id, name, isFull, columns }
}
