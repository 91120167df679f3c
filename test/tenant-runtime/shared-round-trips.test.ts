// Several callers' statements in one trip: who asks the same is answered by one statement, who asks as another by an own one;
// whoever is refused is refused alone.
import t from 'tap'
import { shareLookups } from '#tenant-runtime/database/lookups.ts'
import { SharedRoundTrips, isDecided } from '#tenant-runtime/database/shared-round-trips.ts'
import { sql } from '#tenant-runtime/database/statement.ts'
import type { RlsContext } from '#tenant-runtime/tenancy/rls-context.ts'

const user = (userId: string): RlsContext => ({
  role: 'authenticated',
  userId,
  claims: JSON.stringify({ sub: userId }),
})

t.test('lookups', async (t) => {
  t.test('of one caller that ask the same share a statement, others have their own', async (t) => {
    const requested: [RlsContext, string, string | null][] = [
      [user('ada'), 'select a', 'x'],
      [user('ben'), 'select a', 'x'],
      [user('ada'), 'select a', 'x'],
      [user('ada'), 'select a', 'y'],
      [user('ada'), 'select b', 'x'],
      [{ role: 'anon' }, 'select a', 'x'],
      [user('ada'), 'select a', null],
      [user('ada'), 'select a', 'null'],
      [{ ...user('ada'), claims: '{}' } as RlsContext, 'select a', 'x'],
    ]
    const { parts, deal } = shareLookups(
      requested.map(([context, text, value]) => ({ context, statement: sql(text, value) })),
    )
    t.same(
      parts.map(({ statements }) => statements.length),
      [5, 1, 1, 1],
    )
    // As the database would answer: each statement by who asked it and what.
    const results = parts.flatMap(({ context, statements }) =>
      statements.map(({ text, values }) => JSON.stringify([context, text, values])),
    )
    t.same(
      deal(results),
      requested.map(([context, text, value]) => JSON.stringify([context, text, [value]])),
    )
  })
})

t.test('shared trips', async (t) => {
  t.test('take along what came while one was under way', async (t) => {
    const roundTrips: number[][] = []
    const { promise: begun, resolve: begin } = Promise.withResolvers<unknown>()
    const shared = new SharedRoundTrips<number, number>(async (jobs) => {
      roundTrips.push(jobs)
      if (roundTrips.length === 1) await begun
      return jobs.map((job) => job * 2)
    })
    const first = shared.run(1)
    await new Promise(setImmediate)
    const rest = [2, 3, 4].map((job) => shared.run(job))
    begin(undefined)
    t.same(await Promise.all([first, ...rest]), [2, 4, 6, 8])
    t.same(roundTrips, [[1], [2, 3, 4]])
  })

  t.test('wait a moment for what is on its way, and not for ever', async (t) => {
    const roundTrips: number[][] = []
    const shared = new SharedRoundTrips<number, number>(
      async (jobs) => {
        roundTrips.push(jobs)
        return jobs
      },
      () => 6,
    )
    const early = shared.run(1)
    // Behind the turn in which a trip would begin that waits for nobody.
    await new Promise(setImmediate)
    await new Promise(setImmediate)
    await Promise.all([early, shared.run(2), shared.run(3)])
    t.same(roundTrips, [[1, 2, 3]], 'half of them are there: it goes')
    t.equal(await shared.run(4), 4, 'nobody else comes')
  })

  t.test('that are refused past bearing say so, and a job without an outcome fails', async (t) => {
    const { promise: never } = Promise.withResolvers<readonly number[]>()
    const full = new SharedRoundTrips<number, number>(() => never)
    void full.run(0)
    await new Promise(setImmediate)
    await new Promise(setImmediate)
    for (let n = 0; n < 1_024; n++) void full.run(n)
    const rejected: unknown = await full.run(1).catch((error: unknown) => error)
    t.match(rejected, { code: 'DATABASE_BUSY' })
    t.ok(isDecided(rejected), 'nothing of it will happen')
    await t.rejects(new SharedRoundTrips<number, number>(async () => []).run(1), /no outcome/)
  })
})
