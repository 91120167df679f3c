// Cumulative counters by hour, and which of them the control plane does not know yet. No I/O: whoever reads the
// changed cells (the pusher now, a journal beside it) decides where they go.
import type { Counter, CounterKey, Meter } from '@tenantry/contract'

/** One counter of one hour. `value` only ever grows. */
export interface Cell {
  readonly key: CounterKey
  value: number
  /** What the control plane has acknowledged. */
  acknowledged: number
  /** Whether it stands in the list of changed cells. */
  listed: boolean
}

interface Hour {
  readonly start: string
  readonly tenants: Map<string, Map<string, Cell>>
  cells: number
  /** Cells whose value is not acknowledged. */
  open: number
}

/** What a meter is broken down by. */
export interface Breakdown {
  group: string
  method: string
  statusClass: string
}

const hourMilliseconds = 3_600_000

export class CounterStore {
  readonly #now: () => number
  readonly #cellLimit: number
  readonly #hours = new Map<number, Hour>()
  #changed: Cell[] = []
  #current: Hour
  #currentNumber: number
  #cells = 0

  /**
   * @param now milliseconds since 1970; a clock that steps back goes on counting in the latest hour
   * @param cellLimit above it the oldest closed hours are given up: the one case in which counts are lost
   */
  constructor(now: () => number, cellLimit: number) {
    this.#now = now
    this.#cellLimit = cellLimit
    this.#currentNumber = Math.floor(now() / hourMilliseconds)
    this.#current = this.#openHour(this.#currentNumber)
  }

  /** Cells held in memory. */
  get size(): number {
    return this.#cells
  }

  /** Raises a sum. */
  add(tenantId: string, meter: Meter, breakdown: Breakdown, amount: number): void {
    this.#raise(this.#cell(tenantId, meter, breakdown), amount)
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
      const value = counters[index]?.value ?? 0
      const wasOpen = cell.acknowledged < cell.value
      cell.acknowledged = Math.max(cell.acknowledged, value)
      if (wasOpen && cell.acknowledged === cell.value) this.#settle(cell)
    })
    this.#dropClosed()
  }

  /** Not stored, or nobody knows: they stay to be sent. */
  refused(cells: readonly Cell[]): void {
    for (const cell of cells) this.#list(cell)
  }

  /**
   * Gives up the oldest closed hours until the limit is kept.
   * @returns how many cells with unacknowledged counts were lost
   */
  enforceLimit(): number {
    let lost = 0
    for (const [number, hour] of this.#hours) {
      if (this.#cells <= this.#cellLimit) break
      if (hour === this.#current) continue
      lost += hour.open
      this.#drop(number, hour)
    }
    if (lost > 0) this.#changed = this.#changed.filter((cell) => this.#hours.has(hourNumber(cell.key.hour)))
    return lost
  }

  #cell(tenantId: string, meter: Meter, breakdown: Breakdown): Cell {
    const number = Math.floor(this.#now() / hourMilliseconds)
    if (number > this.#currentNumber) {
      this.#currentNumber = number
      this.#current = this.#openHour(number)
      this.#dropClosed()
    }
    const hour = this.#current
    let cells = hour.tenants.get(tenantId)
    if (cells === undefined) {
      cells = new Map()
      hour.tenants.set(tenantId, cells)
    }
    const { group, method, statusClass } = breakdown
    const name = `${meter} ${group} ${method} ${statusClass}`
    const known = cells.get(name)
    if (known !== undefined) return known
    const key = { tenant_id: tenantId, hour: hour.start, meter, group, method, status_class: statusClass, bucket: '' }
    const cell = { key, value: 0, acknowledged: 0, listed: false }
    cells.set(name, cell)
    hour.cells++
    this.#cells++
    return cell
  }

  #raise(cell: Cell, amount: number): void {
    if (amount <= 0) return
    if (cell.acknowledged === cell.value) this.#hourOf(cell, (hour) => hour.open++)
    cell.value += amount
    this.#list(cell)
  }

  #list(cell: Cell): void {
    if (cell.listed) return
    cell.listed = true
    this.#changed.push(cell)
  }

  #settle(cell: Cell): void {
    this.#hourOf(cell, (hour) => hour.open--)
  }

  #hourOf(cell: Cell, change: (hour: Hour) => void): void {
    const hour = cell.key.hour === this.#current.start ? this.#current : this.#hours.get(hourNumber(cell.key.hour))
    if (hour !== undefined) change(hour)
  }

  #openHour(number: number): Hour {
    const hour = { start: new Date(number * hourMilliseconds).toISOString(), tenants: new Map(), cells: 0, open: 0 }
    this.#hours.set(number, hour)
    return hour
  }

  #dropClosed(): void {
    for (const [number, hour] of this.#hours) if (hour !== this.#current && hour.open === 0) this.#drop(number, hour)
  }

  #drop(number: number, hour: Hour): void {
    this.#hours.delete(number)
    this.#cells -= hour.cells
  }
}

function hourNumber(start: string): number {
  return Math.floor(Date.parse(start) / hourMilliseconds)
}
