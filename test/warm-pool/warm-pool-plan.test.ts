// Which warm tenants a region creates and removes, decided from those that exist.
import fc from 'fast-check'
import t from 'tap'
import type { WarmTenant } from '#control-plane/warm-pool/store.ts'
import { maxMoving, planPool } from '#control-plane/warm-pool/warm-pool-plan.ts'

const images = { postgres: 'p1', runtime: 'r1' }
const former = { postgres: 'p1', runtime: 'r0' }
const tenant = (id: string, state: WarmTenant['state'], of: WarmTenant['images'] = images): WarmTenant => ({
  id,
  state,
  images: of,
})

t.test('planPool decides each case', async (t) => {
  const cases: {
    what: string
    tenants: WarmTenant[]
    size: number
    mayMake?: boolean
    remove: string[]
    make: number
  }[] = [
    { what: 'an empty pool is filled, two at a time', tenants: [], size: 5, remove: [], make: 2 },
    {
      what: 'one that is being created leaves room for one',
      tenants: [tenant('a', 'pending', undefined)],
      size: 5,
      remove: [],
      make: 1,
    },
    { what: 'a full pool stays', tenants: [tenant('a', 'warm'), tenant('b', 'warm')], size: 2, remove: [], make: 0 },
    { what: 'nothing is created while that is not allowed', tenants: [], size: 2, mayMake: false, remove: [], make: 0 },
    {
      what: 'a failed one is removed, and counts as moving',
      tenants: [tenant('a', 'failed'), tenant('b', 'pending')],
      size: 3,
      remove: ['a'],
      make: 0,
    },
    {
      what: 'failed ones that are still leaving delay new ones',
      tenants: [tenant('a', 'leaving'), tenant('b', 'leaving')],
      size: 2,
      remove: [],
      make: 0,
    },
    {
      what: 'of a surplus the unfinished are removed first',
      tenants: [tenant('a', 'pending'), tenant('b', 'warm')],
      size: 1,
      remove: ['a'],
      make: 0,
    },
    {
      what: 'of a surplus the outdated are removed before the current',
      tenants: [tenant('a', 'warm', former), tenant('b', 'warm')],
      size: 1,
      remove: ['a'],
      make: 0,
    },
    {
      what: 'a pool of size 0 is emptied',
      tenants: [tenant('a', 'warm'), tenant('b', 'pending')],
      size: 0,
      remove: ['a', 'b'],
      make: 0,
    },
    {
      what: 'one outdated tenant is removed at a time',
      tenants: [tenant('a', 'warm', former), tenant('b', 'warm', former)],
      size: 2,
      remove: ['a'],
      make: 0,
    },
    {
      what: 'the next outdated one waits until the pool is full',
      tenants: [tenant('a', 'warm', former), tenant('b', 'pending')],
      size: 2,
      remove: [],
      make: 0,
    },
  ]
  for (const { what, tenants, size, mayMake = true, remove, make } of cases) {
    const plan = planPool(tenants, { size, images, mayMake })
    t.same({ ...plan, remove: plan.remove.toSorted() }, { remove, make }, what)
  }
  t.same(
    planPool([tenant('a', 'warm', former)], { size: 1, images: undefined, mayMake: false }),
    { remove: [], make: 0 },
    'nothing is outdated while the images are unknown',
  )
})

t.test(
  'Any pool reaches its size with current images, and never moves more than two tenants at once by itself',
  async (t) => {
    const anyTenant = fc.record({
      state: fc.constantFrom('pending' as const, 'warm' as const, 'failed' as const, 'leaving' as const),
      images: fc.constantFrom(images, former, undefined),
    })
    const holds = fc.property(
      fc.array(anyTenant, { maxLength: 8 }),
      fc.nat(6),
      fc.infiniteStream(fc.boolean()),
      (begin, size, luck) => {
        let pool: WarmTenant[] = begin.map((one, at) => ({
          ...one,
          images: one.state === 'pending' ? one.images : (one.images ?? images),
          id: `begin-${at}`,
        }))
        for (let poll = 0; poll < 60; poll++) {
          const plan = planPool(pool, { size, images, mayMake: true })
          const before = pool.filter(({ state }) => state === 'pending' || state === 'leaving').length
          if (plan.make > 0 && before + plan.make > maxMoving) return false
          if (
            plan.make > 0 &&
            pool.filter(({ state }) => state === 'warm' || state === 'pending').length + plan.make > size
          )
            return false
          // A leaving tenant is gone at the next poll. A new one is warm or failed at random, but not for ever.
          pool = pool
            .filter(({ state }) => state !== 'leaving')
            .map((one): WarmTenant => {
              if (plan.remove.includes(one.id)) return { ...one, state: 'leaving' }
              if (one.state !== 'pending') return one
              return { ...one, images: one.images ?? images, state: poll > 20 || luck.next().value ? 'warm' : 'failed' }
            })
          for (let made = 0; made < plan.make; made++)
            pool.push({ id: `made-${poll}-${made}`, state: 'pending', images: undefined })
        }
        return (
          pool.length === size && pool.every((one) => one.state === 'warm' && one.images?.runtime === images.runtime)
        )
      },
    )
    fc.assert(holds, { seed: 20_260_301, numRuns: 500 })
    t.pass('500 pools')
  },
)
