// The watch of a set that is sent in parts, and what is sent of entries that did not change or cannot be made.
import type { Route, WatchLine } from '@tenantry/contract'
import t from 'tap'
import { until } from '#test/support/until.ts'
import { idOf, MemorySource, watchesOf } from './support/memory-source.ts'

type Line = WatchLine<Route>

t.test(
  'A large set is sent in parts, between which changes are sent, so that the last line of an entry is the newest',
  async (t) => {
    const source = new MemorySource()
    const { tenants: hub } = watchesOf(source, (error) => t.fail(error.message))
    const count = 300
    for (let nth = 0; nth < count; nth++) source.put(idOf(nth), 1, 'x'.repeat(1_000))
    const lines: Line[] = []
    let parts = 0
    const changeBetween = async () => {
      parts++
      if (parts === 2) {
        for (const nth of [0, count - 1]) source.put(idOf(nth), 2)
        source.entries.delete(idOf(1))
        source.entries.delete(idOf(count - 2))
        source.put(idOf(count), 1)
        for (const nth of [0, 1, count - 2, count - 1, count]) hub.onChange({ kind: 'published', subject: idOf(nth) })
      }
      await new Promise((resolve) => setTimeout(resolve, 5))
    }
    const read = (text: string) => {
      const texts = text.split('\n').filter((one) => one !== '')
      return lines.push(...texts.map((one) => JSON.parse(one) as Line)) > 0
    }
    await hub.watch('route', read, { drained: changeBetween })
    t.ok(parts >= 4, `${parts} parts`)
    t.same(lines.at(-1), { type: 'synced' })
    t.same(lines.filter(({ type }) => type === 'synced').length, 1)
    const newest = new Map<string, number>()
    for (const line of lines) {
      if (line.type === 'put') newest.set(line.entry.tenant_id, line.entry.generation)
      else if (line.type === 'remove') newest.delete(line.tenant_id)
    }
    t.same(newest, new Map([...source.entries].map(([id, { route }]) => [id, route.generation])))
  },
)

t.test('A client that leaves while a large set is sent receives nothing more', async (t) => {
  const source = new MemorySource()
  const { tenants: hub } = watchesOf(source, (error) => t.fail(error.message))
  for (let nth = 0; nth < 300; nth++) source.put(idOf(nth), 1, 'x'.repeat(1_000))
  let received = 0
  await hub.watch('route', () => ++received < 2)
  hub.ping()
  t.same(received, 2)
})

t.test('An entry that was read again without a change is not sent', async (t) => {
  const source = new MemorySource()
  const { tenants: hub } = watchesOf(source, (error) => t.fail(error.message))
  const route = {
    tenant_id: idOf(1),
    name: 'one',
    generation: 1,
    phase: 'ready',
    runtimes: [],
    dedicated: false,
  } as Route
  const entry = { tenantId: idOf(1), region: 'local', manifest: undefined, route }
  source.entries.set(idOf(1), { ...entry, version: 'a' })
  const lines: string[] = []
  await hub.watch('route', (text) => lines.push(text) > 0)
  const puts = () => lines.join('').split('"put"').length - 1
  hub.onChange('resync')
  hub.onChange({ kind: 'wanted', subject: idOf(1) })
  source.entries.set(idOf(2), { ...entry, tenantId: idOf(2), version: 'a' })
  hub.onChange({ kind: 'wanted', subject: idOf(2) })
  await until(() => puts() === 2, 'the second entry')
  source.entries.set(idOf(1), { ...entry, version: 'b' })
  hub.onChange({ kind: 'wanted', subject: idOf(1) })
  await until(() => puts() === 3, 'the change')
  t.same(puts(), 3)
})

t.test('An entry that cannot be made is reported, and ends the watch before it is complete', async (t) => {
  const source = new MemorySource()
  const errors: string[] = []
  const { tenants: hub } = watchesOf(source, (error) => errors.push(error.message))
  source.put(idOf(1), 1)
  source.entries.set(idOf(2), {
    tenantId: idOf(2),
    region: 'local',
    manifest: undefined,
    get route(): Route {
      throw new Error('the secret was changed')
    },
  })
  let received = ''
  await t.rejects(
    hub.watch('route', (text) => (received += text) !== ''),
    /the secret was changed/,
  )
  t.same(errors, ['The published entries could not be sent.'])
  t.notMatch(received, 'synced')
  source.put(idOf(2), 1)
  hub.onChange({ kind: 'wanted', subject: idOf(2) })
  await hub.watch('route', (text) => (received += text) !== '')
  t.match(received, 'synced')
})
