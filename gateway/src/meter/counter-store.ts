// Cumulative counters by hour, with those that the control plane or the journal does not have yet. No I/O: the pusher and
// the journal take the changed cells.
import { hourMilliseconds, type Counter, type CounterKey, type Meter } from '@tenantry/contract'

/** One counter of one hour. `value` only ever grows. */
export interface Cell {
  readonly key: CounterKey
  /** The number of its hour since 1970. */
  readonly hour: number
  value: number
  /** The value that the control plane has acknowledged. */
  acknowledged: number
  /** Whether the cell is in the list of cells to push. */
  isListed: boolean
  /** Whether the cell is in the list of cells to write to the journal. */
  isUnwritten: boolean
  /** The last journal segment that has the cell, and the cell's number in it. */
  segment: number
  number: number
}

/** The dimensions of a meter; an omitted one is empty. */
export interface Breakdown {
  group?: string
  method?: string
  statusClass?: string
  bucket?: string
}

interface CurrentHour {
  readonly number: number
  readonly start: string
  readonly tenants: Map<string, Map<string, Cell>>
  cells: number
}

export class CounterStore {
  readonly #now: () => number
  readonly #cellLimit: number
  /** Undefined until the first count, because the clock may be set until then. */
  #current: CurrentHour | undefined
  /** The unacknowledged cells of closed hours, the oldest hour first. */
  readonly #closed = new Map<number, Set<Cell>>()
  #changed: Cell[] = []
  #isUnwritten: Cell[] = []
  #onUnwritten: (() => void) | undefined
  #closedCells = 0

  /**
   * Creates an empty store.
   * @param now milliseconds since 1970; after a step back, counting continues in the latest hour
   * @param cellLimit number of cells above which the oldest closed hours are dropped, the one case in which counts are lost
   */
  constructor(now: () => number, cellLimit: number) {
    this.#now = now
    this.#cellLimit = cellLimit
  }

  /** The number of cells in memory. */
  get size(): number {
    return (this.#current?.cells ?? 0) + this.#closedCells
  }

  /** Increments a sum. */
  add(tenantId: string, meter: Meter, breakdown: Breakdown, amount: number): void {
    if (amount > 0) this.#increment(this.#cell(tenantId, meter, breakdown), amount)
  }

  /** Increments a maximum to `value` unless it is that high already. */
  addMaximum(tenantId: string, meter: Meter, breakdown: Breakdown, value: number): void {
    const cell = this.#cell(tenantId, meter, breakdown)
    if (value > cell.value) this.#increment(cell, value - cell.value)
  }

  /** Takes up to `limit` changed cells. The caller must return each to `acknowledge` or `putBack`. */
  take(limit: number): Cell[] {
    const taken = this.#changed.length <= limit ? this.#changed : this.#changed.slice(0, limit)
    this.#changed = this.#changed.length <= limit ? [] : this.#changed.slice(limit)
    for (const cell of taken) cell.isListed = false
    return taken
  }

  /**
   * Notes that the control plane has stored these values. Cells that have grown in the meantime are already listed again.
   */
  acknowledge(counters: readonly Counter[], cells: readonly Cell[]): void {
    cells.forEach((cell, index) => {
      cell.acknowledged = Math.max(cell.acknowledged, counters[index]?.value ?? 0)
      const closed = cell.acknowledged < cell.value ? undefined : this.#closed.get(cell.hour)
      if (closed?.delete(cell) !== true) return
      this.#closedCells--
      if (closed.size === 0) this.#closed.delete(cell.hour)
    })
  }

  /** Lists cells again that the control plane has not stored, or may not have stored. */
  putBack(cells: readonly Cell[]): void {
    for (const cell of cells) this.#list(cell)
  }

  /** Sets the function that is called when something was counted and nothing else waited to be taken for the journal. */
  onUnwritten(onUnwritten: () => void): void {
    this.#onUnwritten = onUnwritten
  }

  /** Takes the cells that the journal does not have. */
  takeUnwritten(): Cell[] {
    const taken = this.#isUnwritten
    if (taken.length > 0) this.#isUnwritten = []
    for (const cell of taken) cell.isUnwritten = false
    return taken
  }

  /** Returns the unacknowledged cells of all hours. */
  open(): Cell[] {
    const open = [...this.#closed.values()].flatMap((cells) => [...cells])
    for (const cells of this.#current?.tenants.values() ?? []) {
      for (const cell of cells.values()) if (cell.acknowledged < cell.value) open.push(cell)
    }
    return open
  }

  /**
   * Returns the first incomplete hour.
   * @returns number of an hour: all counts before it are acknowledged, and no more will come
   */
  completeUntil(): number {
    const current = this.#hour().number
    let oldest = current
    for (const number of this.#closed.keys()) oldest = Math.min(oldest, number)
    return oldest
  }

  /**
   * Drops the oldest closed hours until the store is within its limit.
   * @returns the number of cells whose unacknowledged counts were lost
   */
  enforceLimit(): number {
    let lost = 0
    for (const [number, cells] of this.#closed) {
      if (this.size <= this.#cellLimit) break
      lost += cells.size
      this.#closedCells -= cells.size
      this.#closed.delete(number)
    }
    if (lost > 0)
      this.#changed = this.#changed.filter(({ hour }) => hour === this.#current?.number || this.#closed.has(hour))
    return lost
  }

  #cell(tenantId: string, meter: Meter, { group = '', method = '', statusClass = '', bucket = '' }: Breakdown): Cell {
    const hour = this.#hour()
    let cells = hour.tenants.get(tenantId)
    if (cells === undefined) {
      cells = new Map()
      hour.tenants.set(tenantId, cells)
    }
    const name = `${meter} ${group} ${method} ${statusClass} ${bucket}`
    const known = cells.get(name)
    if (known !== undefined) return known
    const key = { tenant_id: tenantId, hour: hour.start, meter, group, method, status_class: statusClass, bucket }
    const cell = {
      key,
      hour: hour.number,
      value: 0,
      acknowledged: 0,
      isListed: false,
      isUnwritten: false,
      segment: -1,
      number: 0,
    }
    cells.set(name, cell)
    hour.cells++
    return cell
  }

  #increment(cell: Cell, amount: number): void {
    cell.value += amount
    this.#list(cell)
    if (cell.isUnwritten || this.#onUnwritten === undefined) return
    cell.isUnwritten = true
    if (this.#isUnwritten.push(cell) === 1) this.#onUnwritten()
  }

  #list(cell: Cell): void {
    if (cell.isListed) return
    cell.isListed = true
    this.#changed.push(cell)
  }

  /** Returns the current hour. */
  #hour(): CurrentHour {
    const number = Math.floor(this.#now() / hourMilliseconds)
    if (this.#current !== undefined && number <= this.#current.number) return this.#current
    if (this.#current !== undefined) this.#close(this.#current)
    this.#current = { number, start: startOfHour(number), tenants: new Map(), cells: 0 }
    return this.#current
  }

  /** Closes an hour. Its acknowledged cells cannot change any more. */
  #close({ number, tenants }: CurrentHour): void {
    const open = new Set<Cell>()
    for (const cells of tenants.values())
      for (const cell of cells.values()) if (cell.acknowledged < cell.value) open.add(cell)
    if (open.size === 0) return
    this.#closed.set(number, open)
    this.#closedCells += open.size
  }
}

/** Returns the start of an hour in ISO 8601. */
export function startOfHour(number: number): string {
  return new Date(number * hourMilliseconds).toISOString()
}
