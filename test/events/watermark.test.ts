// The watermark against a small model of Postgres: transactions take IDs and numbers, and commit or roll back, in any
// order.
import fc from 'fast-check'
import t from 'tap'
import { advance, unknownWatermark } from '#tenant-runtime/events/watermark.ts'
import { effort, seed } from '#test/support/effort.ts'

/** Models what transactions do and what a reader sees, as in Postgres. */
class Log {
  nextXid = 100n
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
  }

  get writers(): string[] {
    return [...this.running.keys()].map(String)
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
      // The number is read before the list of transactions; they continue in between.
      let last = log.lastSeq
      const poll = () => {
        const before = mark.final
        mark = advance(mark, { last, running: log.writers })
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

t.test('A number is final when the transactions that ran at its poll have ended, whatever began later', async (t) => {
  const log = new Log()
  log.begin()
  log.write(0)
  let mark = advance(unknownWatermark, { last: log.lastSeq, running: log.writers })
  t.equal(mark.final, -1n)
  log.begin()
  t.equal(advance(mark, { last: log.lastSeq, running: log.writers }), mark)
  log.end(0, true)
  mark = advance(mark, { last: log.lastSeq, running: log.writers })
  t.equal(mark.final, 2n)
  t.equal(mark.pending, undefined)
})
