// When an outage is reported.
import t from 'tap'
import { Outage } from '@tenantry/contract'

t.test('An outage is reported once, after it has lasted for a while', async (t) => {
  const outage = new Outage()
  t.same(
    [10_000, 10_500, 12_999].map((now) => outage.failed(now)),
    [false, false, false],
  )
  t.equal(outage.failed(13_000), true)
  t.equal(outage.failed(60_000), false)
})

t.test('The time of the next outage begins again', async (t) => {
  const outage = new Outage()
  outage.failed(0)
  outage.over()
  t.same(
    [3_000, 5_999, 6_000].map((now) => outage.failed(now)),
    [false, false, true],
  )
  outage.over()
  t.same(
    [7_000, 10_000].map((now) => outage.failed(now)),
    [false, true],
  )
})
