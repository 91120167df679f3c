// A region whose Postgres stops, or is silent, leaves the other regions as they are: requests, creates and changes of their tenants
// continue, and its own tenants return with it.
import t from 'tap'
import { otherRegion } from '#test/support/other-region.ts'
import { until } from '#test/support/until.ts'
import { startTwoRegions, type Owner } from './support/two-regions.ts'

const existing = 10
const creates = 3
/** Less time than attempts of the reconciler need in a region that is silent. */
const waitSeconds = 20
const returnMs = 120_000

t.test('A region whose Postgres fails', { timeout: 400_000 }, async (t) => {
  const regions = await startTwoRegions(t, waitSeconds)
  const { create, rename, get, statusOf } = regions
  const here = [await create('here-0', 'local'), await create('here-1', 'local')]
  const there: Owner[] = []
  for (let n = 0; n < existing; n++) there.push(await create(`there-${n}`, otherRegion))
  // The requested changes rename the others.
  const [, unchanged] = there
  if (unchanged === undefined) throw new Error('The region has no tenants.')

  for (const [number, { name, begin, end }] of regions.failures.entries()) {
    await t.test(name, async (t) => {
      const isOver = new AbortController()
      t.teardown(() => isOver.abort())
      const statuses: number[] = []
      const served = regions.sendRequests(here, isOver.signal, (status) => statuses.push(status))
      await begin()
      const failing = regions.sendRequests(there, isOver.signal)
      const requested = await regions.requestChanges(there, `there-${number}`)

      for (let n = 0; n < creates; n++) {
        const owner = await create(`here-${number}-${n}`, 'local')
        t.equal(await get(owner), 200, 'a tenant of the other region is created')
        t.equal(await get(await rename(owner, `renamed-${number}-${n}`)), 200, 'and changed')
      }
      t.not(await get(unchanged), 200, 'the region still fails')
      t.notOk((await Promise.all(requested.map(statusOf))).includes('ready'), 'and has no new tenant')

      await end()
      await regions.untilReady([...requested, ...there.map(({ id }) => id)], returnMs)
      await until(async () => (await get(unchanged)) === 200, 'its responses', returnMs)
      isOver.abort()
      await Promise.all([served, failing])
      t.ok(statuses.length > 20)
      t.same(new Set(statuses), new Set([200]), 'no request of the other region failed')
    })
  }
})
