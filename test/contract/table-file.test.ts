// The copy of a large watched table on disk: changes are appended, and the last line of an entry is valid.
import { appendFile, mkdtemp, readFile, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { readTableFile, TableFile } from '#contract/table-file.ts'

interface Entry {
  id: string
  value: string
}

const count = 1_500
const entriesOf = (size: number) =>
  new Map(Array.from({ length: size }, (_, n): [string, Entry] => [`e-${n}`, { id: `e-${n}`, value: 'first' }]))

async function scratchFile(t: Test): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'tenantry-table-'))
  t.teardown(() => rm(directory, { recursive: true, force: true }))
  return join(directory, 'copy', 'table.ndjson')
}

const readCopy = (file: string) => readTableFile(file, 'id')

t.test(
  'Changes of a large table are appended, and the copy is replaced when half of its lines are outdated',
  async (t) => {
    const file = await scratchFile(t)
    const entries = entriesOf(count)
    const saved = new TableFile(file, entries)
    await saved.save([...entries.keys()])
    t.same((await readCopy(file)).entries, entries)
    const { ino } = await stat(file)
    entries.set('e-7', { id: 'e-7', value: 'second' })
    entries.delete('e-8')
    entries.set('e-9000', { id: 'e-9000', value: 'new' })
    await saved.save(['e-7', 'e-8', 'e-9000'])
    const changed = await readCopy(file)
    t.same(changed.entries, entries)
    t.same(changed.lines, count + 3)
    t.same((await stat(file)).ino, ino, 'the same file')
    t.same((await stat(file)).mode & 0o777, 0o600)
    for (let n = 0; n < count; n += 100) {
      const ids = Array.from({ length: 100 }, (_, at) => `e-${n + at}`)
      for (const id of ids) if (entries.has(id)) entries.set(id, { id, value: `third ${n}` })
      await saved.save(ids)
    }
    const replaced = await readCopy(file)
    t.same(replaced.entries, entries)
    t.not((await stat(file)).ino, ino)
    t.ok(replaced.lines <= 2 * entries.size, `${replaced.lines} lines`)
  },
)

t.test('A small table is replaced with each change', async (t) => {
  const file = await scratchFile(t)
  const entries = entriesOf(3)
  const saved = new TableFile(file, entries)
  await saved.save([])
  entries.delete('e-1')
  await saved.save(['e-1'])
  t.same(await readFile(file, 'utf8'), '{"id":"e-0","value":"first"}\n{"id":"e-2","value":"first"}')
})

t.test('The end of a killed process leaves a part of a line, and later lines are readable', async (t) => {
  const file = await scratchFile(t)
  const entries = entriesOf(count)
  const saved = new TableFile(file, entries)
  await saved.save([])
  await appendFile(file, '\n{"id":"e-3","val')
  const torn = await readCopy(file)
  t.same([torn.damaged, torn.entries], [1, entries])
  entries.set('e-4', { id: 'e-4', value: 'later' })
  await saved.save(['e-4'])
  t.same((await readCopy(file)).entries, entries)
})

t.test('A process that has read the copy appends to it, and one that has not replaces it', async (t) => {
  const file = await scratchFile(t)
  const entries = entriesOf(count)
  await new TableFile(file, entries).save([])
  const { ino } = await stat(file)
  const reader = new TableFile(file, entries)
  reader.wasRead((await readCopy(file)).lines)
  entries.delete('e-5')
  await reader.save(['e-5'])
  t.same([(await readCopy(file)).entries, (await stat(file)).ino], [entries, ino])
  await new TableFile(file, entries).save(['e-5'])
  t.not((await stat(file)).ino, ino)
  t.same((await readCopy(file)).entries, entries)
})

t.test('A missing copy has no lines', async (t) => {
  t.same(await readCopy(await scratchFile(t)), { entries: new Map(), lines: 0, damaged: 0 })
})
