// Plans of rebalances, without a server: which homes move, and to which databases.
import fc from 'fast-check'
import t from 'tap'
import { maxPlannedMoves, planMoves, type MeasuredDatabase } from '#control-plane/rebalance/plan-moves.ts'
import { exceededLimits } from '#control-plane/rebalance/rebalance.ts'
import { effort, seed } from '#test/support/effort.ts'

const open = (count: number) => ({ name: `new_${count}`, maxHomes: 1_000 })

function database(name: string, sizes: number[], limits: Partial<MeasuredDatabase> = {}): MeasuredDatabase {
  return {
    name,
    homes: sizes.length,
    maxHomes: 1_000,
    bytes: sizes.reduce((sum, size) => sum + size, 0),
    maxBytes: undefined,
    movable: sizes.map((bytes, n) => ({ tenantId: `${name}-${n}`, bytes })),
    ...limits,
  }
}

const movesOf = (databases: MeasuredDatabase[]) =>
  planMoves(databases, open).moves.map(({ tenantId, to }) => `${tenantId} ${to}`)

t.test('Databases below their limits stay as they are', async (t) => {
  t.same(movesOf([database('a', [5, 5], { maxHomes: 2, maxBytes: 10 }), database('b', [])]), [])
  t.same(movesOf([]), [])
})

t.test('The smallest homes leave a database with too many, until there is some room', async (t) => {
  const full = database('a', [9, 1, 5, 3, 7, 2, 8, 6, 4, 10, 11], { maxHomes: 10 })
  t.same(movesOf([full, database('b', [1])]), ['a-1 b', 'a-5 b'])
})

t.test('As few homes as possible leave a database that is too large', async (t) => {
  const large = database('a', [10, 400, 30, 200, 460], { maxBytes: 1_000 })
  t.same(movesOf([large, database('b', [1])]), ['a-3 b'], 'the smallest that is enough')
  const larger = database('a', [10, 400, 30, 200, 860], { maxBytes: 500 })
  t.same(movesOf([larger, database('b', [1])]), ['a-4 b', 'a-3 b'])
})

t.test('A home goes to the emptiest database with room for it, or to a new one', async (t) => {
  const large = database('a', [100, 100], { maxBytes: 100 })
  const others = [
    database('b', [50], { maxBytes: 150 }),
    database('c', [10], { maxBytes: 150 }),
    database('d', [1], { maxHomes: 1 }),
  ]
  t.same(movesOf([large, ...others]), ['a-1 c', 'a-0 new_0'])
  const { after } = planMoves([large, ...others], open)
  t.match(
    after.find(({ name }) => name === 'new_0'),
    { homes: 1, maxHomes: 1_000, bytes: 100, maxBytes: undefined },
  )
})

t.test('A database whose homes cannot move stays above its limit, which the plan shows', async (t) => {
  const stuck = database('a', [10, 10, 10], { maxHomes: 1, movable: [{ tenantId: 'only', bytes: 10 }] })
  const { moves, after } = planMoves([stuck], open)
  t.same(
    moves.map(({ tenantId }) => tenantId),
    ['only'],
  )
  t.same(after.map(exceededLimits), [['homes'], []])
})

t.test('Of any databases, a plan moves each home at most once, and only relieves', async (t) => {
  t.comment(`seed ${seed}`)
  const size = fc.integer({ min: 0, max: 1_000 })
  const databases = fc.array(
    fc.record({
      sizes: fc.array(size, { maxLength: 40 }),
      maxHomes: fc.integer({ min: 1, max: 30 }),
      maxBytes: fc.option(fc.integer({ min: 1, max: 8_000 }), { nil: undefined }),
    }),
    { maxLength: 6 },
  )
  fc.assert(
    fc.property(databases, (given) => {
      const before = given.map(({ sizes, ...limits }, n) => database(`d${n}`, sizes, limits))
      const { moves, after } = planMoves(before, open)
      const sources = new Set(before.filter((one) => exceededLimits(one).length > 0).map(({ name }) => name))
      const total = (list: readonly { homes: number; bytes: number }[]) => [
        list.reduce((sum, { homes }) => sum + homes, 0),
        list.reduce((sum, { bytes }) => sum + bytes, 0),
      ]
      t.same(total(after), total(before))
      return (
        moves.length <= maxPlannedMoves &&
        new Set(moves.map(({ tenantId }) => tenantId)).size === moves.length &&
        moves.every(
          ({ tenantId, from, to }) => tenantId.startsWith(`${from}-`) && sources.has(from) && !sources.has(to),
        ) &&
        // Every home can be moved, so only the maximum of a plan leaves a database above a limit.
        (moves.length === maxPlannedMoves || after.every((one) => exceededLimits(one).length === 0))
      )
    }),
    { seed, numRuns: effort({ small: 200, full: 20_000 }) },
  )
})
