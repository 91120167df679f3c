// The check of all homes leaves the servers to the tenants: the longer a check takes, the longer is the pause after it.
import t from 'tap'
import { watchHomes } from '#control-plane/health/index.ts'
import { stoppedClock } from '#test/support/control-plane/clock.ts'

/**
 * Checks homes, each of which takes some seconds.
 * @returns the times of the first checks, in seconds since the first
 */
async function checkTimes(scene: { homes: number; seconds: number; checks: number; hasSilentRegion?: boolean }) {
  const { homes, seconds, checks, hasSilentRegion = false } = scene
  const clock = stoppedClock()
  const lost = new AbortController()
  const times: number[] = []
  const tenant = (regionId: string, n: number) => ({
    ...{ id: `t_${regionId}${n}`, regionId, isolation: 'schema-per-tenant' as const },
  })
  const urls = (name: string) => ({ runtimeUrls: () => [`http://${name}`] })
  const ended = watchHomes({
    store: {
      readyTenants: (region) => Promise.resolve(Array.from({ length: homes }, (_, n) => tenant(region, n))),
      snapshot: () => Promise.reject(new Error('nothing is read of a healthy home')),
      recordObserved: () => Promise.reject(new Error('nothing is recorded of a healthy home')),
    },
    regions: new Map([...(hasSilentRegion ? [['silent', urls('silent')] as const] : []), ['local', urls('local')]]),
    probe: {
      async tenantHealth(url, _id, signal) {
        if (url.includes('silent')) await new Promise((_, reject) => signal.addEventListener('abort', reject))
        times.push(clock.now().getTime() / 1000)
        await clock.sleep(seconds * 1000, signal)
        return undefined
      },
    },
    clock,
    log: { warn: () => undefined },
  })({ epoch: 1n, lost: lost.signal })
  const turn = () => new Promise((resolve) => setImmediate(resolve))
  await turn()
  for (let passed = 0; times.length < checks; passed++) {
    if (passed > 20_000) throw new Error(`only ${times.length} checks`)
    clock.pass(1)
    await turn()
  }
  lost.abort()
  await ended
  return times.slice(0, checks).map((time) => time - (times[0] ?? 0))
}

t.test('Two homes are checked at a time, and the pause after a check is nine times as long', async (t) => {
  t.same(await checkTimes({ homes: 6, seconds: 2, checks: 6 }), [0, 0, 20, 20, 40, 40])
})

t.test('All pauses of a round together take an hour at most', async (t) => {
  t.same(await checkTimes({ homes: 400, seconds: 4, checks: 5 }), [0, 0, 22, 22, 44])
})

t.test('A region that does not respond delays no other one', async (t) => {
  const times = await checkTimes({ homes: 6, seconds: 2, checks: 6, hasSilentRegion: true })
  t.same(times, [0, 0, 20, 20, 40, 40])
})

t.test('The next round begins a minute after the last pause', async (t) => {
  t.same(await checkTimes({ homes: 1, seconds: 1, checks: 2 }), [0, 70])
})
