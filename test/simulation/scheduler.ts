// Simulated time: events in the order of their time, one after the other, each followed by all that it sets off at once.
// What happens is traced, and hashed: two runs with one hash did the same.

export interface Scheduler {
  /** Milliseconds since the beginning of the run. */
  now(): number
  /** @returns takes it back */
  after(milliseconds: number, work: () => void): () => void
  trace(line: string): void
  /** Until `over` says so, or nothing is left to happen. */
  run(over: () => boolean): Promise<void>
  /** The newest trace lines, oldest first. */
  lines(): string[]
  hash(): string
  /** Events that happened. */
  count(): number
}

interface Event {
  time: number
  order: number
  work: (() => void) | undefined
}

const storedLines = 40

/** @param report is given every trace line */
export function createScheduler(report: (line: string) => void = () => undefined): Scheduler {
  const heap: Event[] = []
  const stored: string[] = []
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
      const text = `${time.toFixed(1)} ${line}`
      // FNV-1a.
      for (let at = 0; at < text.length; at++) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193)
      report(text)
      if (stored.push(text) > 2 * storedLines) stored.splice(0, storedLines)
    },
    // A tick comes when all promises have settled that could: so each event is over before the next.
    async run(over) {
      while (!over() && step()) await new Promise((resolve) => process.nextTick(resolve))
    },
    lines: () => stored.slice(-storedLines),
    hash: () => (hash >>> 0).toString(16).padStart(8, '0'),
    count: () => happened,
  }
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
