// Series of failures: when a tenant gets a lower priority, when it is marked failed, and when it is tried again.
import t from 'tap'
import {
  failedAgain,
  hasFailed,
  keepsFailing,
  retryAfter,
  type FailureSeries,
} from '#control-plane/reconcile/failure-series.ts'

const at = (seconds: number) => new Date(Date.UTC(2026, 0, 1) + seconds * 1000)

function series(count: number, outageOf?: string): FailureSeries {
  let last: FailureSeries | undefined
  for (let n = 0; n < count; n++) last = failedAgain(last, at(n), outageOf)
  if (last === undefined) throw new RangeError('no failure')
  return last
}

t.test('Tenants of an unreachable engine are marked failed in the end, without a lower priority', async (t) => {
  t.notOk(keepsFailing(undefined))
  t.notOk(keepsFailing(series(2)))
  t.ok(keepsFailing(series(3)))
  t.notOk(keepsFailing(series(3, 'local')))
  t.notOk(hasFailed(series(3, 'local'), at(29)))
  t.ok(hasFailed(series(3, 'local'), at(30)))
  t.ok(
    keepsFailing(failedAgain(series(3, 'local'), at(4), undefined)),
    'a failure after the outage counts with all failures before',
  )
  t.notOk(hasFailed(series(2), at(300)), 'two failures are not enough after any time')
})

t.test('The delay doubles up to half a minute and ends when the tenant may be marked failed', async (t) => {
  t.same(
    [1, 2, 3, 8].map((count) => retryAfter(series(count), at(count), 0.5)),
    [100, 200, 400, 12_800],
  )
  t.equal(retryAfter(series(9), at(20), 0.5), 10_000, 'the delay ends after half a minute of failures')
  t.equal(retryAfter(series(20), at(40), 0.5), 30_000)
})
