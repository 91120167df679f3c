// The budget of bytes: shares, what remains for others, waiting, and what is always allowed.
import t from 'tap'
import { alwaysAllowedBytes, ByteBudget } from '#tenant-runtime/bounds/byte-budget.ts'

const mebibyte = 2 ** 20
const budget = () => new ByteBudget(300 * mebibyte)
const shareOf = (key: string) => [{ name: 'tenant', key, maxBytes: 100 * mebibyte }]

/** Takes a mebibyte at a time until there is no room. */
function fill(of: ByteBudget, key: string): number {
  let count = 0
  while (of.open(shareOf(key)).take(mebibyte) === undefined) count++
  return count
}

t.test('However many tenants fill their shares, some of the budget remains for each further one', async (t) => {
  const one = budget()
  const filled = Array.from({ length: 6 }, (_, n) => fill(one, `t_${n}`))
  t.same(filled, [100, 100, 50, 25, 12, 6])
  t.equal(one.open(shareOf('t_9')).take(2 * mebibyte), undefined)
  t.ok(one.used <= one.maxBytes)
  t.equal(one.rejections.get('tenant'), 2)
  t.equal(one.rejections.get('total'), 4)
})

t.test('A tenant that holds little is served while others use the whole budget', async (t) => {
  const one = budget()
  one.open(shareOf('t_1')).force(310 * mebibyte)
  t.equal(one.open(shareOf('t_2')).take(mebibyte)?.name, 'total')
  t.equal(one.open(shareOf('t_2')).take(alwaysAllowedBytes), undefined)
  t.equal(one.open(shareOf('t_2')).take(1)?.name, 'total')
})

t.test('The only holder is served, however much it needs', async (t) => {
  const one = budget()
  const holder = one.open(shareOf('t_1'))
  t.equal(holder.take(400 * mebibyte), undefined)
  t.equal(holder.take(mebibyte), undefined)
  t.equal(one.open(shareOf('t_1')).take(mebibyte)?.name, 'tenant')
  holder.release()
  t.equal(one.used, 0)
})

t.test('Those that wait get room in the order in which they began, or a rejection', async (t) => {
  const one = budget()
  const holder = one.open(shareOf('t_1'))
  holder.force(100 * mebibyte)
  const order: string[] = []
  const wait = async (name: string, mebibytes: number, milliseconds: number) => {
    const full = await one.open(shareOf('t_1')).takeOrWait(mebibytes * mebibyte, milliseconds)
    order.push(full === undefined ? name : `${name}: ${full.name}`)
  }
  const waiting = [wait('first', 60, 60_000), wait('second', 60, 200), wait('third', 30, 60_000)]
  t.equal(one.open(shareOf('t_2')).takeOrWait(mebibyte, 1), undefined, 'another tenant does not wait')
  holder.release()
  await Promise.all(waiting)
  t.same(order, ['first', 'third', 'second: tenant'])
  t.equal(one.rejections.get('tenant'), 1)
})
