// Readings of tenants' homes become hours of the ledger. The bytes of documents are those measured, files and runs are the
// home's own figures, and neither a repeat nor an outage changes the recorded usage.
import { randomUUID } from 'node:crypto'
import fc from 'fast-check'
import { hourMilliseconds, type HomeCounters } from '@tenantry/contract'
import t from 'tap'
import { systemClock } from '#control-plane/platform/clock.ts'
import { openDatabase } from '#control-plane/platform/database.ts'
import { createHomeReadingStore } from '#control-plane/usage/store-home-readings.ts'
import { createUsageLedger } from '#control-plane/usage/store-ledger.ts'
import { createHomeReader } from '#control-plane/usage/jobs-home-reader.ts'
import { heldReading, readingOf, type HomeState } from '#control-plane/usage/home-reading.ts'
import { startOfHour } from '#control-plane/usage/hours.ts'
import { homeSource } from '#control-plane/usage/home-reading.ts'
import { effort, seed } from '#test/support/effort.ts'
import { startApi } from '#test/support/control-plane/api.ts'
import { countersAt, GreatestValues, start } from './support/home-counters.ts'

t.test('documents count for as long as they are stored, in any order of readings and outages', async () => {
  const step = fc.record({
    wait: fc.integer({ min: 1, max: 4 * 3_600 }),
    documents: fc.integer({ min: 0, max: 1_000_000_000 }),
    outage: fc.boolean(),
    isRepeated: fc.boolean(),
  })
  fc.assert(
    fc.property(fc.array(step, { minLength: 1, maxLength: 40 }), (steps) => {
      const stored = new GreatestValues()
      let [at, wanted, documents] = [start, 0n, 1_000]
      let state: HomeState | undefined
      const first = readingOf(undefined, countersAt(at, { documents }), new Date(at))
      for (const reading of first.readings) stored.add(reading)
      state = first.state
      for (const next of steps) {
        wanted += BigInt(documents) * BigInt(next.wait)
        at += next.wait * 1_000
        const before: HomeState = state
        const read = next.outage
          ? heldReading(before, new Date(at))
          : readingOf(before, countersAt(at, { documents: next.documents }), new Date(at))
        const readings = 'readings' in read ? read.readings : [read.reading]
        for (const reading of next.isRepeated ? [...readings, ...readings] : readings) stored.add(reading)
        state = read.state
        if (!next.outage) documents = next.documents
      }
      return stored.sum('documentByteSeconds') === wanted
    }),
    { numRuns: effort({ small: 200, full: 10_000 }), seed },
  )
})

t.test(
  'the files of a home that is not read count as before, and its next figures continue without a jump',
  async (t) => {
    const h = startOfHour(new Date(start)).getTime()
    const stored = new GreatestValues()
    const at = (hours: number) => new Date(h + hours * hourMilliseconds)
    const one = readingOf(
      undefined,
      countersAt(at(0.5).getTime(), { began: h, files: 100, hours: { [h]: { files: 180_000n, runs: 3n } } }),
      at(0.5),
    )
    one.readings.forEach((reading) => stored.add(reading))
    const two = heldReading(one.state, at(2.5))
    stored.add(two.reading)
    t.same(two.reading.completeUntil, at(2))
    t.equal(stored.sum('fileByteSeconds'), 100n * 9_000n)
    const hours = {
      [h]: { files: 360_000n, runs: 4n },
      [at(1).getTime()]: { files: 360_000n },
      [at(2).getTime()]: { files: 360_000n },
      [at(3).getTime()]: { files: 36_000n },
    }
    const three = readingOf(two.state, countersAt(at(3.1).getTime(), { began: h, files: 100, hours }), at(3.1))
    three.readings.forEach((reading) => stored.add(reading))
    t.equal(stored.sum('fileByteSeconds'), 100n * 11_160n)
    t.equal(stored.sum('functionInvocations'), 4n)
    t.same(three.readings.at(-1)?.completeUntil, at(2), 'a run of the last hour may still be in progress')
  },
)

t.test(
  'after a restore, the usage before it stays, the bytes stored until then count, and counting continues',
  async (t) => {
    const h = startOfHour(new Date(start)).getTime()
    const stored = new GreatestValues()
    const one = readingOf(
      undefined,
      countersAt(h + 600_000, { began: h, documents: 10, files: 100, hours: { [h]: { files: 60_000n, runs: 7n } } }),
      new Date(h + 600_000),
    )
    one.readings.forEach((reading) => stored.add(reading))
    const books = '00000000-0000-4000-8000-000000000002'
    const two = readingOf(
      one.state,
      countersAt(h + 1_800_000, {
        books,
        began: h + 1_200_000,
        documents: 20,
        files: 50,
        hours: { [h]: { files: 30_000n, runs: 1n } },
      }),
      new Date(h + 1_800_000),
    )
    two.readings.forEach((reading) => stored.add(reading))
    t.same(
      two.readings.map(({ boot }) => boot),
      [one.state.books, books],
    )
    t.equal(stored.sum('functionInvocations'), 8n)
    t.equal(stored.sum('fileByteSeconds'), 100n * 1_200n + 30_000n)
    t.equal(stored.sum('documentByteSeconds'), 10n * 600n + 10n * 600n + 20n * 600n)
  },
)

t.test('while a tenant was deleted, its bytes do not count, whether or not its home was read then', (t) => {
  const h = startOfHour(new Date(start)).getTime()
  const at = (hours: number) => new Date(h + hours * hourMilliseconds)
  const away = { from: at(0.75), until: at(3.5) }
  const hours = {
    [h]: { files: 360_000n, runs: 3n },
    [at(1).getTime()]: { files: 360_000n },
    [at(2).getTime()]: { files: 360_000n },
    [at(3).getTime()]: { files: 360_000n, runs: 2n },
  }
  const counters = (hour: number, more = {}) =>
    countersAt(at(hour).getTime(), { began: h, documents: 10, files: 100, ...more })
  const first = readingOf(undefined, counters(0.5, { hours: { [h]: { files: 180_000n, runs: 2n } } }), at(0.5))
  const ended = heldReading(first.state, away.from)
  for (const [how, before] of [
    ['read before the deletion', first.state],
    ['ended at the deletion', undefined],
  ] as const) {
    const stored = new GreatestValues()
    for (const reading of [...first.readings, ended.reading]) stored.add(reading)
    const next = readingOf(before, counters(4, { hours }), at(4), away)
    for (const reading of next.readings) stored.add(reading)
    t.equal(stored.sum('documentByteSeconds'), 10n * (2_700n + 1_800n), `documents, ${how}`)
    t.equal(stored.sum('fileByteSeconds'), 100n * 2_700n + 360_000n, `files, ${how}`)
    t.equal(stored.sum('functionInvocations'), 5n, `runs, ${how}`)
    t.same(next.state.readAt, at(4))
  }
  t.end()
})

t.test('the leader reads every home', { timeout: 60_000 }, async (t) => {
  const api = await startApi(t)
  const database = openDatabase(api.controlUrl)
  t.teardown(() => database.$disconnect())
  const tenant = await api.create()
  const id = tenant.tenant_id
  let time = startOfHour(new Date()).getTime() + 600_000
  let response: (() => HomeCounters) | undefined
  const requestedHours: number[] = []
  const books = randomUUID()
  const warnings: string[] = []
  const outcomes: string[] = []
  const deps = {
    store: createHomeReadingStore(database),
    ledger: createUsageLedger(database, () => new Date(time)),
    regions: new Map([
      [
        'local',
        {
          config: { gateway_internal_urls: ['http://gateway.invalid'] } as never,
          runtimeUrls: () => ['http://runtime.invalid'],
        },
      ],
    ]),
    probe: {
      activity: async () => ({
        since: new Date(0).toISOString(),
        tenants: { [id]: { last_request_at: new Date(time).toISOString(), open: 0 } },
      }),
      tenantRecords: async (_url: string, _id: string, hours: number) => {
        requestedHours.push(hours)
        if (response === undefined) throw new Error('no response')
        return response()
      },
    },
    clock: { ...systemClock, now: () => new Date(time) },
    measure: (outcome: string) => outcomes.push(outcome),
    log: { warn: (_details: object, message: string) => warnings.push(message) },
  }
  const reader = createHomeReader(deps)
  const poll = async (of = reader) => {
    await of.poll(new AbortController().signal)
    await of.idle()
  }
  const counters = async () =>
    Object.fromEntries(
      (
        await api.sql(
          'select meter, sum(value)::text as value from usage_counters where tenant_id = $1 and source = $2 group by meter',
          [id, homeSource(id)],
        )
      ).map(({ meter, value }) => [String(meter), String(value)]),
    )
  const h = startOfHour(new Date(time)).getTime()

  t.test(
    'the first reading requests all hours, later ones only the new hours, and no reading repeats within five minutes',
    async (t) => {
      response = () =>
        countersAt(
          time,
          { books, began: h, documents: 1_000, files: 70, hours: { [h]: { files: 42_000n, runs: 2n } } },
          id,
        )
      await poll()
      t.same(requestedHours.splice(0), [999])
      t.same(await counters(), {
        document_byte_seconds: '600000',
        file_byte_seconds: '42000',
        function_invocations: '2',
      })
      await poll()
      t.same(requestedHours.splice(0), [], 'the home was read a moment ago')
      time += 300_001
      response = () =>
        countersAt(
          time,
          { books, began: h, documents: 2_000, files: 70, hours: { [h]: { files: 63_000n, runs: 1n } } },
          id,
        )
      await poll()
      t.same(requestedHours.splice(0), [2])
      t.same(outcomes.splice(0), ['read', 'read'], 'the metrics count both readings')
      t.match(
        await counters(),
        { document_byte_seconds: '900001', file_byte_seconds: '63000', function_invocations: '2' },
        'no count decreases',
      )
    },
  )

  t.test('readNow reads the given home at once, and no home for an unknown tenant', async (t) => {
    const before = await counters()
    const { signal } = new AbortController()
    await reader.readNow('t_00000000000000000000', signal)
    t.same(requestedHours.splice(0), [])
    await reader.readNow(id, signal)
    t.same(requestedHours.splice(0), [1])
    t.same(await counters(), before)
  })

  t.test('a control plane that is killed before it saves a reading counts nothing twice', async (t) => {
    const [before] = await api.sql('select * from home_readings where tenant_id = $1', [id])
    const killed = createHomeReader({
      ...deps,
      store: { ...deps.store, save: () => Promise.reject(new Error('killed')) },
    })
    time += 300_000
    await poll(killed)
    t.same(await api.sql('select * from home_readings where tenant_id = $1', [id]), [before])
    time += 300_000
    await poll()
    t.match(await counters(), { document_byte_seconds: String(900_001 + 2_000 * 600) })
  })

  t.test('a runtime that does not respond keeps hours open for at most two hours', async (t) => {
    response = undefined
    const completeUntil = async () =>
      (await api.sql('select complete_until from usage_sources where source = $1', [homeSource(id)]))[0]?.[
        'complete_until'
      ] as Date
    const open = await completeUntil()
    time += hourMilliseconds
    outcomes.length = 0
    await poll()
    t.same(await completeUntil(), open)
    t.ok(warnings.length > 0)
    t.same(outcomes, ['failed'])
    time += 1.5 * hourMilliseconds
    await poll()
    t.ok((await completeUntil()) > open)
    t.match(
      await counters(),
      {
        document_byte_seconds: String(900_001 + 2_000 * 600 + 2_000 * 9_000),
        file_byte_seconds: String(63_000 + Math.floor(((time - (h + 1_500_001)) * 70) / 1_000) - 1),
      },
      'the bytes stored before still count',
    )
  })

  t.test('a region that does not respond delays no other one', async (t) => {
    const [stored] = await deps.store.home(id)
    if (stored === undefined) throw new Error('The home is missing.')
    const home = { ...stored, state: undefined }
    const silent = Array.from({ length: 20 }, (_, n) => ({ ...home, tenantId: `t_${n}`, regionId: 'silent' }))
    const away = new AbortController()
    const isHere = Promise.withResolvers<string>()
    const read: string[] = []
    const two = createHomeReader({
      ...deps,
      store: { ...deps.store, dueHomes: () => Promise.resolve([...silent, home]) },
      regions: new Map(
        ['silent', 'local'].map((name) => [
          name,
          { config: { gateway_internal_urls: [] } as never, runtimeUrls: () => [`http://${name}.invalid`] },
        ]),
      ),
      probe: {
        ...deps.probe,
        async tenantRecords(url: string, tenantId: string): Promise<never> {
          read.push(tenantId)
          if (url.includes('silent')) await new Promise((resolve) => away.signal.addEventListener('abort', resolve))
          else isHere.resolve(tenantId)
          throw new Error('no response')
        },
      },
    })
    await two.poll(away.signal)
    await isHere.promise
    t.same(read.filter((tenantId) => tenantId !== id).length, 8, 'eight at a time in the region')
    await two.poll(away.signal)
    t.same(read.filter((tenantId) => tenantId !== id).length, 8, 'the next poll adds none')
    away.abort()
    await two.idle()
  })

  t.test('the next reading includes what happens while a home responds', async (t) => {
    const at = time
    response = () => {
      time += 3 * hourMilliseconds
      return countersAt(at, { books, began: h, documents: 2_000, files: 70 }, id)
    }
    await reader.readNow(id, new AbortController().signal)
    const [{ read_at: readAt } = {}] = await api.sql('select read_at from home_readings where tenant_id = $1', [id])
    t.same(readAt, new Date(at))
    requestedHours.length = 0
    response = () => countersAt(time, { books, began: h, documents: 2_000, files: 70 }, id)
    await reader.readNow(id, new AbortController().signal)
    t.same(requestedHours, [4], 'the next reading requests those hours')
  })

  t.test('a deleted home counts no longer, and holds no hours open', async (t) => {
    const before = await counters()
    await api.call('DELETE', `/v1/tenants/${id}`)
    await poll()
    t.same(await api.sql('select * from home_readings where tenant_id = $1', [id]), [])
    t.same(await counters(), before)
    t.match(
      await api.sql('select extract(year from complete_until)::int as year from usage_sources where source = $1', [
        homeSource(id),
      ]),
      [{ year: 9999 }],
    )
    await poll()
    t.same(await api.sql('select * from home_readings where tenant_id = $1', [id]), [], 'the home is not read again')
  })

  t.test('the home of an undeleted tenant is read again, and the next hours wait for it', async (t) => {
    await api.call('POST', `/v1/tenants/${id}/undelete`, { headers: { prefer: 'wait=30' } })
    time += hourMilliseconds
    response = () => countersAt(time, { books, began: h, documents: 2_000, files: 70 }, id)
    await poll()
    t.same(await api.sql('select read_at from home_readings where tenant_id = $1', [id]), [{ read_at: new Date(time) }])
    const [{ year } = {}] = await api.sql(
      'select extract(year from complete_until)::int as year from usage_sources where source = $1',
      [homeSource(id)],
    )
    t.equal(year, new Date(time).getUTCFullYear())
    await api.call('DELETE', `/v1/tenants/${id}`)
    await poll()
  })

  t.test('an idle home is read once an hour, as soon as the hour before can be complete', async (t) => {
    const { tenant_id: quiet } = await api.create()
    const begin = startOfHour(new Date(time)).getTime() + hourMilliseconds
    response = () => countersAt(time, { books: randomUUID(), began: begin }, quiet)
    const readsAt = async (minutes: number) => {
      time = begin + minutes * 60_000
      requestedHours.length = 0
      await poll()
      return requestedHours.length
    }
    t.same(
      [
        await readsAt(5),
        await readsAt(9),
        await readsAt(10),
        await readsAt(69),
        await readsAt(70),
        await readsAt(71),
        await readsAt(129),
        await readsAt(130),
      ],
      [1, 0, 1, 0, 1, 0, 0, 1],
    )
    t.same(await api.sql('select complete_until from usage_sources where source = $1', [homeSource(quiet)]), [
      { complete_until: new Date(begin + 2 * hourMilliseconds) },
    ])
  })
})
