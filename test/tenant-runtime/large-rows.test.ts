// Large rows begin to arrive in turns.
import { setImmediate as round } from 'node:timers/promises'
import t from 'tap'
import { LargeRows } from '#tenant-runtime/database/large-rows.ts'

const megabyte = 1024 * 1024

t.test('A row of a megabyte uses two rounds, and small rows wait for nothing', async (t) => {
  const rows = new LargeRows()
  const begun: number[] = []
  for (let n = 0; n < 20; n++) {
    const turn = rows.begin('t_1', megabyte)
    if (turn === undefined) begun.push(n)
    else void turn.then(() => begun.push(n))
  }
  t.equal(rows.begin('t_1', 1_000), undefined)
  t.equal(begun.length, 1)
  for (let n = 1; n <= 10; n++) {
    await round()
    await round()
    t.same(
      begun,
      Array.from({ length: n + 1 }, (_, at) => at),
    )
  }
})

t.test('The rows of one tenant wait for one of another, not for all', async (t) => {
  const rows = new LargeRows()
  const begun: string[] = []
  const begin = (tenantId: string) =>
    void (rows.begin(tenantId, megabyte) ?? Promise.resolve()).then(() => begun.push(tenantId))
  for (let n = 0; n < 50; n++) begin('t_1')
  for (let n = 0; n < 3; n++) begin('t_2')
  while (begun.length < 53) await round()
  t.same(begun.slice(0, 8), ['t_1', 't_1', 't_2', 't_1', 't_2', 't_1', 't_2', 't_1'])
})

t.test('After the last row, the next one waits for nothing', async (t) => {
  const rows = new LargeRows()
  t.equal(rows.begin('t_1', 10 * megabyte), undefined)
  for (let n = 0; n < 20; n++) await round()
  t.equal(rows.begin('t_1', megabyte), undefined)
})
