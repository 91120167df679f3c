// Which leases a call reports when a start has one to request for each of many tenants.
import t from 'tap'
import { firstToReport } from '#gateway/quota/report-order.ts'

const due = (n: number, more: { waiting?: number; state?: string } = {}) => ({
  n,
  waiters: { size: more.waiting ?? 0 },
  state: more.state ?? 'unknown',
})
const order = (all: ReturnType<typeof due>[], max: number) => firstToReport(all, max).map(({ n }) => n)

t.test('All are reported, in their order, if the call has room', async (t) => {
  t.same(order([due(1), due(2, { waiting: 1 }), due(3)], 3), [1, 2, 3])
})

t.test('Those for which requests wait come first, and then the newest', async (t) => {
  const start = Array.from({ length: 100 }, (_, n) => due(n))
  t.same(order([...start, due(100)], 4), [100, 99, 0, 1], 'a new tenant does not wait for the others of the start')
  t.same(order([due(7), due(8), due(9, { waiting: 2 }), due(10), due(11)], 4), [9, 11, 10, 7])
})

t.test('Those with a grant that always change do not keep others from being reported', async (t) => {
  const changing = [1, 2, 3].map((n) => due(n, { state: 'granted' }))
  t.same(order([due(9), ...changing, due(10), due(11)], 4), [11, 10, 9, 1])
})
