// The check of all homes leaves the servers to the tenants: the longer a round takes, the longer is the pause after it.
import t from 'tap'
import { watchHomes } from '#control-plane/health/index.ts'
import type { Snapshot } from '#control-plane/reconcile/index.ts'
import { stoppedClock } from '#test/support/control-plane/clock.ts'

/** Returns the seconds from the end of a first round to the begin of the second one. */
async function pauseAfter(roundSeconds: number): Promise<number> {
  const clock = stoppedClock()
  const lost = new AbortController()
  let rounds = 0
  const ended = watchHomes({
    store: {
      readyTenants: () => Promise.resolve([`t_${++rounds}`]),
      snapshot: (id) => Promise.resolve({ id, regionId: 'local' } as Snapshot),
      recordObserved: () => Promise.reject(new Error('nothing is recorded of a healthy home')),
    },
    regions: new Map([['local', { runtimeUrls: () => ['http://runtime'] }]]),
    probe: {
      tenantHealth() {
        clock.pass(roundSeconds)
        return Promise.resolve(undefined)
      },
    },
    clock,
    log: { warn: () => undefined },
  })({ epoch: 1n, lost: lost.signal })
  const turn = () => new Promise((resolve) => setImmediate(resolve))
  const begun = clock.now().getTime()
  await turn()
  for (let seconds = 0; rounds < 2; seconds++) {
    if (seconds > 10_000) throw new Error('no second round')
    clock.pass(1)
    await turn()
  }
  lost.abort()
  await ended
  return (clock.now().getTime() - begun) / 1000 - 2 * roundSeconds
}

t.test('A round that takes little time is repeated each minute', async (t) => {
  t.equal(await pauseAfter(1), 60)
})

t.test('The pause after a long round is nine times as long, at most an hour', async (t) => {
  t.equal(await pauseAfter(20), 180)
  t.equal(await pauseAfter(1_000), 3_600)
})
