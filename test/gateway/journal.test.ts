// The journal holds every count, despite cut and damaged files, a full disk, and the change from one segment to the next.
import { randomUUID } from 'node:crypto'
import { mkdir, mkdtemp, readdir, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Counter, CounterKey } from '@tenantry/contract'
import fc from 'fast-check'
import t, { type Test } from 'tap'
import { CounterStore } from '#gateway/meter/counter-store.ts'
import { Journal } from '#gateway/meter/journal/journal.ts'
import { readJournals } from '#gateway/meter/journal/replay.ts'
import { FrameWriter, readSegment } from '#gateway/meter/journal/segment.ts'
import { effort, seed } from '#test/support/effort.ts'
import { newTenantId } from './support/gateway.ts'

const hour = 3_600_000
const origin = { source: 'gateway-test-0', boot: randomUUID() }

t.test('Of a segment that is cut or damaged, exactly the complete frames count', async (t) => {
  const keys = Array.from({ length: 5 }, (_, nth) => keyOf(newTenantId(), nth))
  const { frames, bytes } = segmentOf(keys, 40)
  t.same(valuesIn(bytes), new Map(keys.map((key, nth) => [key.tenant_id, 35 + nth + 1])))
  fc.assert(
    fc.property(fc.nat(bytes.length), (end) => {
      const { counters, torn, damaged, origin: storedOrigin } = readSegment(bytes.subarray(0, end))
      const whole = frames.filter((frame) => frame.end <= end)
      const last = whole.at(-1)?.end ?? 0
      if (torn !== end - last || damaged !== 0) return false
      if (whole.length > 0 && storedOrigin?.boot !== origin.boot) return false
      // The nth frame after the head sets the next key in turn.
      return counters.every(({ tenant_id, value }) => value === lastValue(keys, tenant_id, whole.length - 1))
    }),
    { seed, numRuns: effort({ small: 300, full: 5_000 }) },
  )
  fc.assert(
    fc.property(fc.nat(bytes.length - 1), fc.integer({ min: 1, max: 255 }), (at, change) => {
      const garbled = Buffer.from(bytes)
      garbled[at] = (garbled[at] ?? 0) ^ change
      const { counters, torn, damaged } = readSegment(garbled)
      const hit = frames.findIndex((frame) => at < frame.end)
      const isLast = hit === frames.length - 1
      if ((isLast ? torn : damaged) === 0) return false
      return (
        counters.every(({ tenant_id, value }) => value <= lastValue(keys, tenant_id, frames.length - 1)) &&
        counters.length >= keys.length - 1
      )
    }),
    { seed, numRuns: effort({ small: 300, full: 5_000 }) },
  )
})

t.test('The counts of one turn of the event loop are written once, before their waiters continue', async (t) => {
  const { store, journal, storedCounts } = await open(t)
  const order: string[] = []
  const [a, b] = [newTenantId(), newTenantId()]
  store.add(a, 'requests', { group: 'rest', method: 'GET', statusClass: '2xx' }, 1)
  journal.whenWritten(() => order.push('first'))
  store.add(a, 'requests', { group: 'rest', method: 'GET', statusClass: '2xx' }, 1)
  store.add(b, 'egress_bytes', { group: 'rest' }, 4_000_000_000_000)
  journal.whenWritten(() => order.push('second'))
  t.same(order, [])
  await turn()
  t.same(order, ['first', 'second'])
  t.same(await storedCounts(), [
    [a, 'requests', 2],
    [b, 'egress_bytes', 4_000_000_000_000],
  ])
  journal.whenWritten(() => order.push('third'))
  t.same(order, ['first', 'second', 'third'], 'without pending writes there is no wait')
})

t.test('A segment begins with all open counters, and replaces the segments before it', async (t) => {
  const { store, journal, storedCounts, directory } = await open(t, { segmentBytes: 1 })
  const tenants = Array.from({ length: 2_500 }, () => newTenantId())
  for (const id of tenants) store.add(id, 'requests', { group: 'rest' }, 3)
  await turn()
  const acknowledged = store.take(1_000)
  store.acknowledge(
    acknowledged.map((cell) => ({ ...cell.key, value: cell.value })),
    acknowledged,
  )
  for (let nth = 0; nth < 5; nth++) {
    const ticked = journal.tick()
    t.same(
      new Set((await storedCounts()).slice(-1_500).map(([, , value]) => value)),
      new Set([3]),
      'no counter is missing during the change',
    )
    await ticked
  }
  store.add(tenants[0] ?? '', 'requests', { group: 'rest' }, 1)
  for (let nth = 0; nth < 4; nth++) await turn()
  await journal.tick()
  await journal.tick()
  t.ok((await readdir(directory)).length <= 2)
  const remaining = (await storedCounts()).map(([id, , value]) => [id, value] as const)
  t.same(
    new Map(remaining),
    new Map([...tenants.slice(1_000).map((id) => [id, 3] as const), [tenants[0], 4] as const]),
    'acknowledged counters are removed',
  )
  await journal.close(false)
  t.same((await storedCounts()).length, 1_501)
})

t.test('With a full disk counts stay in memory with an error, and all are written afterwards', async (t) => {
  const { store, journal, storedCounts, directory, errors } = await open(t, {}, async (directory) => {
    // Every write to this file fails for lack of space.
    await symlink('/dev/full', join(directory, `${origin.boot}-1.journal`))
  })
  const id = newTenantId()
  let isReleased = false
  store.add(id, 'requests', { group: 'rest' }, 1)
  journal.whenWritten(() => (isReleased = true))
  await turn()
  t.ok(isReleased, 'the response ends nevertheless')
  t.same(errors, ['The journal of counts cannot be written. Counts are only in memory.'])
  store.add(id, 'requests', { group: 'rest' }, 1)
  for (let nth = 0; nth < 3; nth++) {
    await journal.tick()
    await turn()
  }
  t.same(await storedCounts(), [[id, 'requests', 2]])
  t.same(
    errors,
    ['The journal of counts cannot be written. Counts are only in memory.', 'The journal of counts is written again.'],
    'each message once',
  )
  t.equal((await readdir(directory)).length, 1)
})

t.test('A journal whose directory cannot be created loses no count in memory', async (t) => {
  const parent = await mkdtemp(join(tmpdir(), 'tenantry-journal-'))
  t.teardown(() => rm(parent, { recursive: true, force: true }))
  const directory = join(parent, 'journal')
  await writeFile(directory, 'in the way')
  const errors: string[] = []
  const store = new CounterStore(() => 0, 1000)
  const journal = new Journal({
    ...origin,
    directory,
    store,
    elapsed: () => 0,
    onError: ({ message }) => errors.push(message),
  })
  await journal.start()
  store.add(newTenantId(), 'requests', { group: 'rest' }, 1)
  await turn()
  await journal.tick()
  t.same(errors, ['The journal of counts cannot be written. Counts are only in memory.'])
  t.equal(store.take(10).length, 1)
  await rm(directory)
  await mkdir(directory)
  await journal.tick()
  await turn()
  await journal.tick()
  t.equal(errors.at(-1), 'The journal of counts is written again.')
  await journal.close(false)
  t.equal((await readJournals(directory, '', () => t.fail('the journal is damaged')))[0]?.counters.length, 1)
})

t.test('Journals of several starts are read, damaged ones in part, and other files not at all', async (t) => {
  const directory = await mkdtemp(join(tmpdir(), 'tenantry-journal-'))
  t.teardown(() => rm(directory, { recursive: true, force: true }))
  const [one, two] = [randomUUID(), randomUUID()]
  const keys = [keyOf(newTenantId(), 0), keyOf(newTenantId(), 1)]
  const { bytes } = segmentOf(keys, 10)
  const { bytes: more } = segmentOf(keys, 12)
  await writeFile(join(directory, `${one}-1.journal`), more)
  await writeFile(join(directory, `${one}-2.journal`), bytes)
  await writeFile(
    join(directory, `${two}-1.journal`),
    Buffer.concat([Buffer.from('?'.repeat(60)), bytes.subarray(60), Buffer.from('cut')]),
  )
  await writeFile(join(directory, 'notes.journal'), 'another file')
  await mkdir(join(directory, `${randomUUID()}-1.journal`))
  const errors: string[] = []
  const replays = await readJournals(directory, 'gateway-now', ({ message }) => errors.push(message))
  t.same(
    new Map(replays.map(({ boot, source }) => [boot, source])),
    new Map([
      [one, 'gateway-test-0'],
      [two, 'gateway-now'],
    ]),
    "a journal without a readable source has the reader's",
  )
  t.same(
    replays.find(({ boot }) => boot === one)?.counters.map(({ value }) => value),
    [11, 12],
    'the greatest of both segments',
  )
  t.equal(errors.length, 3)
  for (const pattern of [/cannot be read/, /is damaged: \d+ of \d+ bytes/, /ends in an incomplete write of 3 bytes/]) {
    t.equal(errors.filter((error) => pattern.test(error)).length, 1, String(pattern))
  }
})

function keyOf(tenant_id: string, nth: number): CounterKey {
  return {
    tenant_id,
    hour: new Date(nth * hour).toISOString(),
    meter: 'requests',
    group: 'rest',
    method: 'GET',
    status_class: '2xx',
    bucket: '',
  }
}

/** Returns the keys, then `length` frames that set the first, second, … key in turn to 1, 2, and so on. */
function segmentOf(keys: CounterKey[], length: number) {
  const writer = new FrameWriter()
  const chunks: Buffer[] = []
  const write = (content: () => void) => {
    writer.begin()
    content()
    chunks.push(Buffer.from(writer.end()))
  }
  write(() => writer.origin(origin))
  for (const [nth, key] of keys.entries()) {
    write(() => {
      writer.key(nth, key)
      writer.value(nth, 0)
    })
  }
  for (let nth = 0; nth < length; nth++) write(() => writer.value(nth % keys.length, nth + 1))
  let end = 0
  return { bytes: Buffer.concat(chunks), frames: chunks.map((chunk) => ({ end: (end += chunk.length) })) }
}

function valuesIn(bytes: Buffer): Map<string, number> {
  return new Map(readSegment(bytes).counters.map(({ tenant_id, value }: Counter) => [tenant_id, value]))
}

/** Returns the value of a tenant's key after `frames` frames, not counting the head. */
function lastValue(keys: CounterKey[], tenantId: string, frames: number): number {
  const nth = keys.findIndex(({ tenant_id }) => tenant_id === tenantId)
  const raised = frames - keys.length
  return raised <= nth ? 0 : raised - ((raised - 1 - nth) % keys.length)
}

const turn = () => new Promise((resolve) => setImmediate(resolve))

async function open(
  t: Test,
  more: { segmentBytes?: number } = {},
  before: (directory: string) => Promise<void> = async () => undefined,
) {
  const directory = await mkdtemp(join(tmpdir(), 'tenantry-journal-'))
  await before(directory)
  const errors: string[] = []
  const store = new CounterStore(() => 0, 100_000)
  const journal = new Journal({
    ...origin,
    directory,
    store,
    elapsed: () => 0,
    onError: ({ message }) => errors.push(message),
    ...more,
  })
  await journal.start()
  t.teardown(async () => {
    await journal.close(false)
    await rm(directory, { recursive: true, force: true })
  })
  const storedCounts = async () => {
    const [replay] = await readJournals(directory, '', () => undefined)
    return (replay?.counters ?? []).map(({ tenant_id, meter, value }) => [tenant_id, meter, value] as const)
  }
  return { store, journal, directory, errors, storedCounts }
}
