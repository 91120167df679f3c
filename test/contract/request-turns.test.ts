// Requests of a tenant that arrive together begin in turns, and others' begin in each round.
import { setImmediate as round } from 'node:timers/promises'
import t from 'tap'
import { RequestTurns } from '#contract/request-turns.ts'

/** Requests that note when they begin. */
function createRequests(turns: RequestTurns) {
  const begun: string[] = []
  const ended = new Set<string>()
  return {
    begun,
    ended,
    arrive(tenantId: string, name: string) {
      if (turns.begins(tenantId)) begun.push(name)
      else
        turns.wait(tenantId, () => {
          if (ended.has(name)) return false
          begun.push(name)
          return true
        })
    },
  }
}

t.test('A thousand requests of a tenant begin in their order, sixteen in a round', async (t) => {
  const turns = new RequestTurns()
  const { begun, arrive } = createRequests(turns)
  for (let n = 0; n < 1_000; n++) arrive('t_1', String(n))
  arrive('t_2', 'other')
  t.equal(begun.length, 17)
  t.equal(begun.at(-1), 'other', 'in the same round')
  t.same([turns.waiting, turns.waitingOf('t_1'), turns.waitingOf('t_2')], [984, 984, 0])
  for (let n = 2; n <= 10; n++) {
    await round()
    arrive('t_2', 'other')
    const ofFirst = begun.filter((name) => name !== 'other')
    t.equal(ofFirst.length, 16 * n, `round ${n}`)
    t.equal(begun.length, 17 * n)
  }
  while (turns.waiting > 0) await round()
  t.same(
    begun.filter((name) => name !== 'other'),
    Array.from({ length: 1_000 }, (_, n) => String(n)),
  )
})

t.test('A request does not overtake those that wait, and one that has ended uses no turn', async (t) => {
  const turns = new RequestTurns()
  const { begun, ended, arrive } = createRequests(turns)
  for (let n = 0; n < 40; n++) arrive('t_1', String(n))
  for (let n = 16; n < 36; n++) ended.add(String(n))
  await round()
  arrive('t_1', 'late')
  t.same(begun.slice(16), ['36', '37', '38', '39', 'late'])
  await round()
  await round()
  t.ok(turns.begins('t_1'))
  t.throws(() => turns.wait('t_9', () => true), /only in the round/)
})
