// Counts of realtime messages: whatever is lost, repeated or restored between the runtime's file and the home, the control
// plane counts each message once.
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import t from 'tap'
import { hourMilliseconds } from '@tenantry/contract'
import { MessageCounts } from '#tenant-runtime/metering/message-counts.ts'
import { MessageJournal } from '#tenant-runtime/metering/message-journal.ts'
import { effort } from '#test/support/effort.ts'

const tenant = 't_00000000000000000001'

/** A home with its counters, and the control plane, which has the greatest value of each. */
class Home {
  readonly read = new Map<string, number>()
  counters = 1
  #rows = new Map<string, number>()

  /** Stores what the runtime has, as its statement does. Returns the ID of the counters. */
  store(counts: MessageCounts): string {
    const batch = counts.unstored(tenant)
    const id = `counters ${this.counters}`
    if (batch === undefined || (batch.counters !== undefined && batch.counters !== id)) return id
    for (const [hour, count] of batch.hours) {
      const key = `${id} ${batch.id} ${hour}`
      this.#rows.set(key, Math.max(count, this.#rows.get(key) ?? 0))
    }
    return id
  }

  readAll(): void {
    for (const [key, value] of this.#rows) this.read.set(key, Math.max(value, this.read.get(key) ?? 0))
  }

  /** Another home with new counters replaces this one, just after it was read. */
  restore(): void {
    this.#rows = new Map()
    this.counters++
  }

  get sum(): number {
    return [...this.read.values()].reduce((sum, value) => sum + value, 0)
  }
}

/** Stores the counts and processes the response, as the meter does. */
function storeAll(counts: MessageCounts, home: Home): void {
  const batch = counts.unstored(tenant)
  const id = home.store(counts)
  if (batch === undefined) return
  if (batch.counters === undefined || batch.counters === id) counts.store(tenant, batch, id, [...batch.hours])
  else {
    counts.restart(tenant)
    storeAll(counts, home)
  }
}

t.test('Each message counts once, whatever happens between file, home and control plane', async (t) => {
  const operation = fc.oneof(
    {
      weight: 6,
      arbitrary: fc.record({ kind: fc.constant('count' as const), messages: fc.integer({ min: 1, max: 9 }) }),
    },
    fc.record({ kind: fc.constantFrom('store', 'lost response', 'kill', 'rewrite', 'restore', 'hour') }),
  )
  fc.assert(
    fc.property(fc.array(operation, { maxLength: 60 }), (operations) => {
      let id = 0
      const newId = () => `id ${id++}`
      const home = new Home()
      let counts = new MessageCounts(newId)
      let file: string[] = []
      let [total, at] = [0, Date.UTC(2026, 4, 1)]
      const write = () => file.push(...counts.changes())
      for (const each of operations) {
        if ('messages' in each) {
          counts.count(tenant, at, each.messages)
          total += each.messages
        } else if (each.kind === 'store') storeAll(counts, home)
        else if (each.kind === 'lost response') home.store(counts)
        else if (each.kind === 'rewrite') {
          counts.changes()
          file = counts.lines()
        } else if (each.kind === 'restore') {
          storeAll(counts, home)
          home.readAll()
          home.restore()
        } else if (each.kind === 'hour') at += hourMilliseconds * 30
        else {
          counts = new MessageCounts(newId)
          counts.load(file)
        }
        write()
      }
      storeAll(counts, home)
      home.readAll()
      return home.sum === total && counts.unstored(tenant) === undefined
    }),
    { numRuns: effort({ small: 300, full: 20_000 }) },
  )
  t.pass('all counts agree')
})

t.test('The file has what was counted before a kill, and survives a torn end', async (t) => {
  const directory = await mkdtemp(join(tmpdir(), 'messages-'))
  t.teardown(() => rm(directory, { recursive: true, force: true }))
  const path = join(directory, 'deep', '7.ndjson')
  const errors: string[] = []
  const open = () => {
    const counts = new MessageCounts(() => '00000000-0000-4000-8000-000000000001')
    const journal = new MessageJournal({ path, counts, onError: ({ message }) => errors.push(message) })
    journal.load()
    return { counts, journal }
  }
  const at = Date.UTC(2026, 4, 1)
  const first = open()
  first.counts.count(tenant, at, 2)
  first.journal.write()
  first.counts.count(tenant, at, 3)
  first.journal.write()
  t.same(errors, [])
  // The first journal is not closed, as after a kill.
  const second = open()
  t.same([...(second.counts.unstored(tenant)?.hours ?? [])], [[at, 5]])
  await writeFile(path, `${await readFile(path, 'utf8')}{"tenant_id":"t_0`)
  const third = open()
  t.same([...(third.counts.unstored(tenant)?.hours ?? [])], [[at, 5]])
  t.same(errors, ['1 of 3 lines of realtime messages could not be read.'])
  third.counts.count(tenant, at, 1)
  third.journal.write()
  t.same([...(open().counts.unstored(tenant)?.hours ?? [])], [[at, 6]], 'the torn line is not in the way of later ones')
  for (let n = 0; n < 20_000; n++) {
    third.counts.count(tenant, at, 1)
    third.journal.write()
  }
  t.ok((await readFile(path)).length < 1_000_200, 'the file does not grow without end')
  t.same([...(open().counts.unstored(tenant)?.hours ?? [])], [[at, 20_006]])
  for (const { journal } of [first, third]) journal.close()
})

t.test('While the file cannot be written, counts are in memory, and are written later', async (t) => {
  const directory = await mkdtemp(join(tmpdir(), 'messages-'))
  t.teardown(() => rm(directory, { recursive: true, force: true }))
  const folder = join(directory, 'folder')
  await writeFile(folder, 'a file in the place of the folder')
  const errors: string[] = []
  const counts = new MessageCounts(() => '00000000-0000-4000-8000-000000000001')
  const path = join(folder, '7.ndjson')
  const journal = new MessageJournal({ path, counts, onError: ({ message }) => errors.push(message) })
  for (let n = 0; n < 3; n++) {
    counts.count(tenant, 0, 1)
    journal.write()
  }
  t.same(errors, ['The counts of realtime messages cannot be written.'])
  await rm(folder)
  await journal.sync()
  t.match(await readFile(path, 'utf8'), /"count":3/)
  t.equal(errors.at(-1), 'The counts of realtime messages are written again.')
  journal.close()
})
