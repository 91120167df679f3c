// Simulated time. Events run one after the other in the order of their times, each with all work that it starts at once.
// The trace of all events is hashed: two runs with the same hash are identical.

export interface Scheduler {
  /** Returns the milliseconds since the start of the run. */
  now(): number
  /** Schedules work. @returns a function that cancels it */
  after(milliseconds: number, work: () => void): () => void
  trace(line: string): void
  /** Runs events until `over` returns true or none remains. */
  run(over: () => boolean): Promise<void>
  /** Returns the newest trace lines, oldest first. */
  lines(): string[]
  hash(): string
  /** Returns the number of events that have run. */
  count(): number
}

interface Event {
  time: number
  order: number
  work: (() => void) | undefined
}

const storedLines = 40

/** Creates a scheduler. @param report receives every trace line */
export function createScheduler(report?: (line: string) => void): Scheduler {
  const heap: Event[] = []
  const stored: { at: number; line: string }[] = []
  let time = 0
  let order = 0
  let happened = 0
  let hash = 0x811c9dc5

  const step = () => {
    for (let event = pop(heap); event !== undefined; event = pop(heap)) {
      if (event.work === undefined) continue
      time = event.time
      happened++
      event.work()
      return true
    }
    return false
  }

  return {
    now: () => time,
    after(milliseconds, work) {
      const event: Event = { time: time + Math.max(0, milliseconds), order: order++, work }
      push(heap, event)
      return () => {
        event.work = undefined
      }
    },
    trace(line) {
      // FNV-1a.
      hash = Math.imul(hash ^ (10 * time), 0x01000193)
      for (let at = 0; at < line.length; at++) hash = Math.imul(hash ^ line.charCodeAt(at), 0x01000193)
      report?.(textOf(time, line))
      if (stored.push({ at: time, line }) > 2 * storedLines) stored.splice(0, storedLines)
    },
    // The next tick runs after all promises that can settle, so that each event ends before the next.
    async run(over) {
      while (!over() && step()) await new Promise((resolve) => process.nextTick(resolve))
    },
    lines: () => stored.slice(-storedLines).map(({ at, line }) => textOf(at, line)),
    hash: () => (hash >>> 0).toString(16).padStart(8, '0'),
    count: () => happened,
  }
}

function textOf(time: number, line: string): string {
  return `${time.toFixed(1)} ${line}`
}

function isBefore(a: Event, b: Event): boolean {
  return a.time < b.time || (a.time === b.time && a.order < b.order)
}

function push(heap: Event[], event: Event): void {
  let at = heap.push(event) - 1
  while (at > 0) {
    const parent = (at - 1) >> 1
    const above = heap[parent]
    if (above === undefined || isBefore(above, event)) break
    heap[at] = above
    at = parent
  }
  heap[at] = event
}

function pop(heap: Event[]): Event | undefined {
  const first = heap[0]
  const last = heap.pop()
  if (first === undefined || last === undefined || heap.length === 0) return first
  let at = 0
  for (;;) {
    const left = heap[2 * at + 1]
    const right = heap[2 * at + 2]
    const isRight = left !== undefined && right !== undefined && isBefore(right, left)
    const child = isRight ? right : left
    if (child === undefined || isBefore(last, child)) break
    heap[at] = child
    at = 2 * at + (isRight ? 2 : 1)
  }
  heap[at] = last
  return first
}
