// The bodies of a tenant with many connections pass in turns, and another tenant's pass in each round.
import { setImmediate as round } from 'node:timers/promises'
import t from 'tap'
import { ByteTurns, BodyChunks } from '#contract/byte-turns.ts'

const chunk = 64 * 1024

/** A source that passes a chunk in each round of the event loop, unless it waits for its turn. */
function createSource(turns: ByteTurns, tenantId: string) {
  const source = {
    passed: 0,
    isPaused: false,
    poll: () => {
      if (source.isPaused) return
      source.passed++
      turns.add(tenantId, chunk)
      if (!turns.isOver(tenantId)) return
      source.isPaused = true
      turns.wait(tenantId, () => (source.isPaused = false))
    },
  }
  return source
}

t.test('Sixty bodies of a tenant pass four chunks in a round, and each has its turn', async (t) => {
  const turns = new ByteTurns()
  const bodies = Array.from({ length: 60 }, () => createSource(turns, 't_1'))
  const other = createSource(turns, 't_2')
  const passedOf = () => bodies.reduce((sum, { passed }) => sum + passed, 0)
  for (const { poll } of bodies) poll()
  const first = passedOf()
  for (let n = 1; n <= 150; n++) {
    await round()
    for (const { poll } of bodies) poll()
    other.poll()
    // Three bodies that began before the turn was over pass one more chunk.
    t.ok(passedOf() <= first + 3 + 4 * n, `round ${n}`)
  }
  const counts = bodies.map(({ passed }) => passed)
  t.ok(Math.min(...counts) >= 10, `the least of them has passed ${Math.min(...counts)} chunks`)
  t.ok(Math.max(...counts) - Math.min(...counts) <= 4)
  t.equal(other.passed, 150)
})

t.test('Small chunks are not counted, and a turn begins anew in each round', async (t) => {
  const turns = new ByteTurns()
  for (let n = 0; n < 1_000; n++) turns.add('t_1', 1_000)
  t.notOk(turns.isOver('t_1'))
  turns.add('t_1', 4 * chunk)
  t.ok(turns.isOver('t_1'))
  t.notOk(turns.isOver('t_2'))
  await round()
  t.notOk(turns.isOver('t_1'))
})

t.test('A body that has ended leaves its turn to others', async (t) => {
  const turns = new ByteTurns()
  turns.add('t_1', 4 * chunk)
  const resumed: number[] = []
  const leave = Array.from({ length: 1_000 }, (_, n) => turns.wait('t_1', () => resumed.push(n)))
  for (const one of leave.slice(0, 998)) one()
  await round()
  t.same(resumed, [998, 999])
})

t.test('Many small chunks of one body count as a large one does', (t) => {
  const chunks = new BodyChunks()
  t.same(
    [1, 1, 1].map((bytes) => chunks.add(bytes)),
    [0, 0, 0],
  )
  t.equal(chunks.add(1), 16 * 1024, 'each as 4 KB')
  t.equal(chunks.add(64 * 1024), 64 * 1024)
  t.end()
})

t.test('A round may last longer than one of the event loop', async (t) => {
  const turns = new ByteTurns(50)
  turns.add('t_1', 4 * chunk)
  for (let n = 0; n < 5; n++) await round()
  t.ok(turns.isOver('t_1'))
  await new Promise<void>((resolve) => turns.wait('t_1', resolve))
  turns.add('t_1', chunk)
  t.notOk(turns.isOver('t_1'))
})
