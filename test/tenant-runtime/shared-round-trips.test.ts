// Statements of several callers in one round trip: equal queries of one caller share a statement, other callers have
// their own, and a rejected caller affects no other.
import t from 'tap'
import { shareLookups } from '#tenant-runtime/database/lookups.ts'
import { SharedRoundTrips, hasNoEffect } from '#tenant-runtime/database/shared-round-trips.ts'
import { sql } from '#tenant-runtime/database/statement.ts'
import type { RlsContext } from '#tenant-runtime/tenancy/rls-context.ts'

const user = (userId: string): RlsContext => ({
  role: 'authenticated',
  userId,
  claims: JSON.stringify({ sub: userId }),
})

t.test('Lookups are shared', async (t) => {
  t.test('Equal lookups of one caller share a statement, others have their own', async (t) => {
    const lookups: [RlsContext, string, string | null][] = [
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
    const { parts, distribute } = shareLookups(
      lookups.map(([context, text, value]) => ({ context, statement: sql(text, value) })),
    )
    t.same(
      parts.map(({ statements }) => statements.length),
      [5, 1, 1, 1],
    )
    // Results in the form of the database: one for each statement, labelled with its caller and query.
    const results = parts.flatMap(({ context, statements }) =>
      statements.map(({ text, values }) => JSON.stringify([context, text, values])),
    )
    t.same(
      distribute(results),
      lookups.map(([context, text, value]) => JSON.stringify([context, text, [value]])),
    )
  })
})

t.test('Round trips are shared', async (t) => {
  t.test('A round trip includes everything that arrived during the previous one', async (t) => {
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

  t.test('A round trip waits for a limited time for more jobs', async (t) => {
    const roundTrips: number[][] = []
    const shared = new SharedRoundTrips<number, number>(
      async (jobs) => {
        roundTrips.push(jobs)
        return jobs
      },
      () => 6,
    )
    const early = shared.run(1)
    // Continues after the turn in which a round trip without waiting would begin.
    await new Promise(setImmediate)
    await new Promise(setImmediate)
    await Promise.all([early, shared.run(2), shared.run(3)])
    t.same(roundTrips, [[1, 2, 3]], 'with half of the expected jobs it starts')
    t.equal(await shared.run(4), 4, 'no other job arrives')
  })

  t.test('A job beyond the maximum is rejected, and a job without an outcome fails', async (t) => {
    const { promise: never } = Promise.withResolvers<readonly number[]>()
    const full = new SharedRoundTrips<number, number>(() => never)
    void full.run(0)
    await new Promise(setImmediate)
    await new Promise(setImmediate)
    for (let n = 0; n < 1_024; n++) void full.run(n)
    const rejected: unknown = await full.run(1).catch((error: unknown) => error)
    t.match(rejected, { code: 'DATABASE_BUSY' })
    t.ok(hasNoEffect(rejected), 'the job will not run')
    await t.rejects(new SharedRoundTrips<number, number>(async () => []).run(1), /no outcome/)
  })
})
