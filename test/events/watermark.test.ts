// The watermark against a small model of Postgres: transactions take IDs and numbers, and commit or roll back, in any
// order.
import fc from 'fast-check'
import t from 'tap'
import { advance, unknownWatermark } from '#tenant-runtime/events/watermark.ts'
import { effort, seed } from '#test/support/effort.ts'

/** Models what transactions do and what a reader sees, as in Postgres. */
class Log {
  nextXid = 100n
  latestEnded = 99n
  lastSeq = 1n
  readonly running = new Map<bigint, bigint[]>()
  readonly committed = new Set<bigint>()

  begin(): bigint {
    this.running.set(this.nextXid, [])
    return this.nextXid++
  }

  write(which: number) {
    const all = [...this.running.values()]
    all[which % Math.max(1, all.length)]?.push(++this.lastSeq)
  }

  end(which: number, commits: boolean) {
    const xid = [...this.running.keys()][which % Math.max(1, this.running.size)]
    if (xid === undefined) return
    if (commits) for (const seq of this.running.get(xid) ?? []) this.committed.add(seq)
    this.running.delete(xid)
    if (xid > this.latestEnded) this.latestEnded = xid
  }

  /**
   * Returns the oldest transaction that a snapshot knows. It knows no transaction after the last that has ended,
   * running or not.
   */
  oldestOf(own: bigint): bigint {
    const known = [...this.running.keys()].filter((xid) => xid <= this.latestEnded)
    return [...known, own, this.latestEnded + 1n].reduce((oldest, xid) => (xid < oldest ? xid : oldest))
  }
}

const step = fc.oneof(
  fc.record({ do: fc.constant('begin' as const) }),
  fc.record({ do: fc.constant('write' as const), which: fc.nat(20) }),
  fc.record({ do: fc.constant('end' as const), which: fc.nat(20), commits: fc.boolean() }),
  fc.record({ do: fc.constant('number' as const) }),
  fc.record({ do: fc.constant('poll' as const) }),
)

t.test('No event appears at or below the watermark, and it reaches the end after all transactions', async (t) => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 120 }), (steps) => {
      const log = new Log()
      let mark = unknownWatermark
      let seenAt: ReadonlySet<bigint> = new Set()
      // The number is read before the snapshot is taken; other transactions continue in between.
      let last = log.lastSeq
      const poll = () => {
        const before = mark.final
        const later = log.begin()
        mark = advance(mark, { last, later, ended: log.oldestOf(later) })
        log.end(log.running.size - 1, false)
        if (mark.final < before) throw new Error('it went back')
        for (const seq of log.committed)
          if (seq <= before && !seenAt.has(seq)) throw new Error(`${seq} appeared at or below ${before}`)
        seenAt = new Set(log.committed)
      }
      for (const one of steps) {
        if (one.do === 'begin') log.begin()
        else if (one.do === 'write') log.write(one.which)
        else if (one.do === 'end') log.end(one.which, one.commits)
        else if (one.do === 'number') last = log.lastSeq
        else poll()
      }
      while (log.running.size > 0) log.end(0, true)
      last = log.lastSeq
      poll()
      poll()
      return mark.final === log.lastSeq && mark.pending === undefined
    }),
    { seed, numRuns: effort({ small: 2_000, full: 100_000 }) },
  )
  t.pass()
})

t.test(
  'The last number alone is not final while a transaction that the snapshot does not show is running',
  async (t) => {
    const log = new Log()
    log.begin()
    log.write(0)
    const later = log.begin()
    const ended = log.oldestOf(later)
    t.equal(ended, 100n, 'the running transaction is after the last that has ended')
    t.equal(advance(unknownWatermark, { last: log.lastSeq, later, ended }).final, -1n)
  },
)
