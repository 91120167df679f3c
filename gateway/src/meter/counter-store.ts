// Cumulative counters by hour, which of them the control plane does not know yet, and which the journal has not got.
// No I/O: the pusher and the journal take the changed cells and bring them where they go.
import { hourMilliseconds, type Counter, type CounterKey, type Meter } from '@tenantry/contract'

/** One counter of one hour. `value` only ever grows. */
export interface Cell {
  readonly key: CounterKey
  /** Number of its hour since 1970. */
  readonly hour: number
  value: number
  /** What the control plane has acknowledged. */
  acknowledged: number
  /** Whether it stands in the list of what is to be pushed. */
  listed: boolean
  /** Whether it stands in the list of what is to be written to the journal. */
  unwritten: boolean
  /** The journal's: the last segment that knows the cell, and by what number. */
  segment: number
  number: number
}

/** What a meter is broken down by; a part left out is empty. */
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
  /** Undefined until anything is counted: by then the clock may have been set. */
  #current: CurrentHour | undefined
  /** Of hours that are over: what is not acknowledged, the oldest hour first. */
  readonly #closed = new Map<number, Set<Cell>>()
  #changed: Cell[] = []
  #unwritten: Cell[] = []
  #onUnwritten: (() => void) | undefined
  #closedCells = 0

  /**
   * @param now milliseconds since 1970; a clock that steps back goes on counting in the latest hour
   * @param cellLimit above it the oldest closed hours are given up: the one case in which counts are lost
   */
  constructor(now: () => number, cellLimit: number) {
    this.#now = now
    this.#cellLimit = cellLimit
  }

  /** Cells held in memory. */
  get size(): number {
    return (this.#current?.cells ?? 0) + this.#closedCells
  }

  /** Raises a sum. */
  add(tenantId: string, meter: Meter, breakdown: Breakdown, amount: number): void {
    if (amount > 0) this.#raise(this.#cell(tenantId, meter, breakdown), amount)
  }

  /** Raises a maximum to `value` unless it is there already. */
  atLeast(tenantId: string, meter: Meter, breakdown: Breakdown, value: number): void {
    const cell = this.#cell(tenantId, meter, breakdown)
    if (value > cell.value) this.#raise(cell, value - cell.value)
  }

  /** Takes up to `limit` changed cells; each must be given back to `acknowledge` or `refused`. */
  take(limit: number): Cell[] {
    const taken = this.#changed.length <= limit ? this.#changed : this.#changed.slice(0, limit)
    this.#changed = this.#changed.length <= limit ? [] : this.#changed.slice(limit)
    for (const cell of taken) cell.listed = false
    return taken
  }

  /** The control plane has stored these values; whatever grew meanwhile is changed again already. */
  acknowledge(counters: readonly Counter[], cells: readonly Cell[]): void {
    cells.forEach((cell, index) => {
      cell.acknowledged = Math.max(cell.acknowledged, counters[index]?.value ?? 0)
      const closed = cell.acknowledged < cell.value ? undefined : this.#closed.get(cell.hour)
      if (closed?.delete(cell) !== true) return
      this.#closedCells--
      if (closed.size === 0) this.#closed.delete(cell.hour)
    })
  }

  /** Not stored, or nobody knows: they stay to be sent. */
  refused(cells: readonly Cell[]): void {
    for (const cell of cells) this.#list(cell)
  }

  /** From now on `onUnwritten` is told when something was counted and nothing else waited to be taken for the journal. */
  journalled(onUnwritten: () => void): void {
    this.#onUnwritten = onUnwritten
  }

  /** Takes what the journal has not got. */
  takeUnwritten(): Cell[] {
    const taken = this.#unwritten
    if (taken.length > 0) this.#unwritten = []
    for (const cell of taken) cell.unwritten = false
    return taken
  }

  /** What is not acknowledged, of all hours. */
  open(): Cell[] {
    const open = [...this.#closed.values()].flatMap((cells) => [...cells])
    for (const cells of this.#current?.tenants.values() ?? []) {
      for (const cell of cells.values()) if (cell.acknowledged < cell.value) open.push(cell)
    }
    return open
  }

  /** @returns number of an hour: all that was counted before it is acknowledged, and nothing more will be */
  completeUntil(): number {
    const current = this.#hour().number
    let oldest = current
    for (const number of this.#closed.keys()) oldest = Math.min(oldest, number)
    return oldest
  }

  /**
   * Gives up the oldest closed hours until the limit is kept.
   * @returns how many cells with unacknowledged counts were lost
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
      listed: false,
      unwritten: false,
      segment: -1,
      number: 0,
    }
    cells.set(name, cell)
    hour.cells++
    return cell
  }

  #raise(cell: Cell, amount: number): void {
    cell.value += amount
    this.#list(cell)
    if (cell.unwritten || this.#onUnwritten === undefined) return
    cell.unwritten = true
    if (this.#unwritten.push(cell) === 1) this.#onUnwritten()
  }

  #list(cell: Cell): void {
    if (cell.listed) return
    cell.listed = true
    this.#changed.push(cell)
  }

  /** The hour that is counted in. */
  #hour(): CurrentHour {
    const number = Math.floor(this.#now() / hourMilliseconds)
    if (this.#current !== undefined && number <= this.#current.number) return this.#current
    if (this.#current !== undefined) this.#close(this.#current)
    this.#current = { number, start: startOfHour(number), tenants: new Map(), cells: 0 }
    return this.#current
  }

  /** What is acknowledged of an hour that is over can't change any more. */
  #close({ number, tenants }: CurrentHour): void {
    const open = new Set<Cell>()
    for (const cells of tenants.values())
      for (const cell of cells.values()) if (cell.acknowledged < cell.value) open.add(cell)
    if (open.size === 0) return
    this.#closed.set(number, open)
    this.#closedCells += open.size
  }
}

/** ISO 8601. */
export function startOfHour(number: number): string {
  return new Date(number * hourMilliseconds).toISOString()
}
