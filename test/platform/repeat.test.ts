// Work that is done from time to time: at its time, whatever happened before, until it is stopped.
import t from 'tap'
import { repeat } from '#control-plane/platform/repeat.ts'
import { LeadershipLost } from '#control-plane/platform/leadership-lost.ts'
import { stoppedClock } from '#test/support/control-plane/clock.ts'

const turn = () => new Promise((resolve) => setImmediate(resolve))

t.test('it is done at once, then when it asked to be', async (t) => {
  const clock = stoppedClock()
  const stopping = new AbortController()
  const times: number[] = []
  const begin = clock.now().getTime()
  const ended = repeat(
    {
      clock,
      onError: () => undefined,
      work: async () => (times.push(clock.now().getTime() - begin), times.length * 1000),
    },
    stopping.signal,
  )
  for (let second = 0; second < 7; second++) {
    await turn()
    clock.pass(1)
  }
  t.same(times, [0, 1000, 3000, 6000])
  stopping.abort()
  await ended
  t.pass('it ends when it is stopped, also in its sleep')
})

t.test('what one run throws is told, and it goes on; a lead that was lost is not told', async (t) => {
  const clock = stoppedClock()
  const stopping = new AbortController()
  const errors: unknown[] = []
  const faults = [new Error('first'), new LeadershipLost('second'), undefined]
  let runs = 0
  const ended = repeat(
    {
      clock,
      onError: (error) => errors.push(error),
      async work() {
        const fault = faults[runs++]
        if (fault !== undefined) throw fault
        return 1000
      },
    },
    stopping.signal,
  )
  for (let second = 0; second < 12; second++) {
    await turn()
    clock.pass(1)
  }
  t.same(errors, [faults[0]])
  t.equal(runs, 4, 'after 5 s each time that it failed')
  stopping.abort()
  await ended
})

t.test('stopped before it began it does nothing', async (t) => {
  let runs = 0
  await repeat({ clock: stoppedClock(), onError: () => undefined, work: async () => ++runs }, AbortSignal.abort())
  t.equal(runs, 0)
})
