// Failures in a row: whom they put behind others, when they are called failed, and when they are tried again.
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

t.test('an outage of the engine is told of its tenants in the end, and puts none of them behind others', async (t) => {
  t.notOk(keepsFailing(undefined))
  t.notOk(keepsFailing(series(2)))
  t.ok(keepsFailing(series(3)))
  t.notOk(keepsFailing(series(3, 'local')))
  t.notOk(hasFailed(series(3, 'local'), at(29)))
  t.ok(hasFailed(series(3, 'local'), at(30)))
  t.ok(
    keepsFailing(failedAgain(series(3, 'local'), at(4), undefined)),
    'what fails when it is over counts from the first',
  )
  t.notOk(hasFailed(series(2), at(300)), 'twice is not enough, however long it takes')
})

t.test('the delay doubles to half a minute, and ends when the tenant may be called failed', async (t) => {
  t.same(
    [1, 2, 3, 8].map((count) => retryAfter(series(count), at(count), 0.5)),
    [100, 200, 400, 12_800],
  )
  t.equal(retryAfter(series(9), at(20), 0.5), 10_000, 'not past the half minute')
  t.equal(retryAfter(series(20), at(40), 0.5), 30_000)
})
