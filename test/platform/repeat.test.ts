// `repeat` runs work at the times that the work returns, also after errors, until it is stopped.
import t from 'tap'
import { repeat } from '#control-plane/platform/repeat.ts'
import { LeadershipLost } from '#control-plane/platform/leadership-lost.ts'
import { stoppedClock } from '#test/support/control-plane/clock.ts'

const turn = () => new Promise((resolve) => setImmediate(resolve))

t.test('the work runs at once, then after each delay that it returns', async (t) => {
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
  t.pass('it ends when it is stopped, also while it sleeps')
})

t.test('an error of one run is reported and the work continues; a lost lead is not reported', async (t) => {
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
  t.equal(runs, 4, 'the work runs again 5 s after each failure')
  stopping.abort()
  await ended
})

t.test('when it is stopped before it begins, the work does not run', async (t) => {
  let runs = 0
  await repeat({ clock: stoppedClock(), onError: () => undefined, work: async () => ++runs }, AbortSignal.abort())
  t.equal(runs, 0)
})
