// Targets that hang: they are skipped at once, also by archives, and a base backup does not wait for one.
import { randomBytes, randomUUID } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { buffer } from 'node:stream/consumers'
import t, { type Test } from 'tap'
import { createArchiveFiles } from '#control-plane/backups/archive/archive-files.ts'
import { createArchiveDirectory, type ArchiveTarget } from '#control-plane/backups/archive/archive-target.ts'
import { createArchiveCopier } from '#control-plane/backups/archive/copy-archives.ts'
import { encrypted } from '#control-plane/backups/encrypted-stream.ts'
import { createTargetCalls } from '#control-plane/backups/target-calls.ts'
import { createTargets } from '#control-plane/backups/target-set.ts'
import { systemClock } from '#control-plane/platform/clock.ts'
import { until } from '#test/support/until.ts'
import { chunks, signal } from './support/targets.ts'

/** A clock whose limits end after a hundredth of their time. */
const clock = { ...systemClock, timeout: (milliseconds: number) => AbortSignal.timeout(milliseconds / 100) }
// The timers of limits do not keep a process alive.
const alive = setInterval(() => undefined, 1_000)
t.teardown(() => clearInterval(alive))
const unavailable = { code: 'TARGET_UNAVAILABLE', message: /"one"/ }
const segment = (number: number) => `00000001000000000000000${number}`
const never = () => new Promise<never>(() => undefined)
const key = randomBytes(32)

async function directory(t: Test, name: string): Promise<ArchiveTarget> {
  const path = await mkdtemp(join(tmpdir(), `tenantry-${name}-`))
  t.teardown(() => rm(path, { recursive: true, force: true }))
  return createArchiveDirectory(path, randomUUID(), name)
}

/** A target that hangs while `state.hangs`, with the names of its calls. */
function hanging(target: ArchiveTarget) {
  const calls: string[] = []
  const waiting: (() => void)[] = []
  const state = { hangs: true, calls, release: () => waiting.splice(0).forEach((resolve) => resolve()) }
  const through = async <T>(name: string, work: () => Promise<T>): Promise<T> => {
    calls.push(name)
    if (state.hangs) await new Promise<void>((resolve) => waiting.push(resolve))
    return work()
  }
  const slow: ArchiveTarget = {
    ...target,
    write: (...parameters) => through('write', () => target.write(...parameters)),
    has: (...parameters) => through('has', () => target.has(...parameters)),
    names: (...parameters) => through('names', () => target.names(...parameters)),
    remove: (...parameters) => through('remove', () => target.remove(...parameters)),
    async *read(...parameters) {
      await through('read', () => Promise.resolve())
      yield* target.read(...parameters)
    },
  }
  return { target: slow, state }
}

t.test('Archives skip a target that hangs at once, until it responds again', async (t) => {
  const [one, two] = [hanging(await directory(t, 'one')), await directory(t, 'two')]
  const calls = createTargetCalls(clock)
  const files = createArchiveFiles([one.target, two], clock, calls)
  const id = randomUUID()
  const write = (number: number) => files.write(id, segment(number), () => chunks(Buffer.from('text')), signal)
  await write(1)
  t.same(one.state.calls, ['write'])
  for (const number of [2, 3, 4]) await write(number)
  t.same(await files.names(id), [1, 2, 3, 4].map(segment))
  t.equal(await files.remove(id, segment(4)), 4)
  await files.write(id, 'base-1', () => chunks(Buffer.from('base')), signal)
  t.same(one.state.calls, ['write'], 'further calls do not reach it')
  await t.rejects(calls.inTime({ name: 'one' }, 1_000, never), unavailable, 'backups share the calls of archives')
  one.state.hangs = false
  one.state.release()
  // The call that was too late has to return first.
  await until(async () => {
    await write(5)
    return one.target.has(id, segment(5))
  }, 'it is used again')
})

t.test('Backups and archives share the knowledge of a target that hangs', async (t) => {
  const calls = createTargetCalls(clock)
  const one = hanging(await directory(t, 'one'))
  const silent = { name: 'one', list: never } as never
  await t.rejects(createTargets([silent], clock, calls).list(), unavailable)
  const files = createArchiveFiles([one.target], clock, calls)
  await t.rejects(files.names(randomUUID()), unavailable)
  t.same(one.state.calls, [])
})

t.test('A file is read from another target while one hangs', async (t) => {
  const plain = await directory(t, 'one')
  const [one, two] = [hanging(plain), await directory(t, 'two')]
  const files = createArchiveFiles([one.target, two], clock)
  const id = randomUUID()
  const opening = { key, context: 'file' }
  const sealed = () => encrypted(chunks(Buffer.from('content')), key, 'file')
  for (const target of [plain, two]) await target.write(id, segment(1), sealed(), signal)
  const read = async () => (await buffer(files.read(id, segment(1), opening, signal))).toString()
  t.equal(await read(), 'content')
  t.equal(await read(), 'content')
  t.same(one.state.calls, ['has'])
  const alone = createArchiveFiles([one.target], clock)
  await t.rejects(buffer(alone.read(id, segment(1), opening, signal)), unavailable, 'a read ends, too')
})

t.test('A base backup goes to the next target when one hangs, before or while it is written', async (t) => {
  const two = await directory(t, 'two')
  const id = randomUUID()
  let sources = 0
  async function* content() {
    sources++
    yield* chunks(randomBytes(300_000))
  }
  const silent = hanging(await directory(t, 'one'))
  const before = createArchiveFiles([silent.target, two], clock)
  t.equal(await before.write(id, 'base-1', content, signal), 300_000)
  t.same([silent.state.calls, sources], [['has'], 1], 'the base backup is read once')

  const plain = await directory(t, 'one')
  let isTaken = false
  const stalls: ArchiveTarget = {
    ...plain,
    async write(_archive, _name, base) {
      for await (const chunk of base) {
        isTaken = chunk.length > 0
        break
      }
      return never()
    },
  }
  const during = createArchiveFiles([stalls, two], clock)
  t.equal(await during.write(id, 'base-2', content, signal), 300_000)
  t.ok(isTaken)
  t.same((await two.names(id)).sort(), ['base-1', 'base-2'])
  await t.rejects(createArchiveFiles([stalls], clock).write(id, 'base-3', content, signal), unavailable)
})

t.test('A slow source of a base backup is not a target that hangs', async (t) => {
  const target = await directory(t, 'one')
  const id = randomUUID()
  async function* slow() {
    yield Buffer.from('first ')
    // Longer than twice the limit.
    await new Promise((resolve) => setTimeout(resolve, 1_500))
    yield Buffer.from('second')
  }
  t.equal(await createArchiveFiles([target], clock).write(id, 'base-1', slow, signal), 12)
  t.equal((await buffer(target.read(id, 'base-1', signal))).toString(), 'first second')
})

t.test('A stop does not wait for a target that hangs', async (t) => {
  const one = hanging(await directory(t, 'one'))
  const files = createArchiveFiles([one.target], systemClock)
  for (const name of [segment(1), 'base-1']) {
    const stop = new AbortController()
    const written = files.write(randomUUID(), name, () => chunks(Buffer.from('text')), stop.signal)
    stop.abort(new Error('stopped'))
    await t.rejects(written, { message: 'stopped' })
  }
})

t.test('A copy to one target does not wait for another one that hangs', async (t) => {
  const [plain, two, three] = [await directory(t, 'one'), await directory(t, 'two'), await directory(t, 'three')]
  const one = hanging(plain)
  const id = randomUUID()
  const completeAt = new Date()
  const archive = {
    ...{ id, tenantId: 't_0123456789abcdef0123', state: 'open' as const, latest: completeAt, bytes: 0 },
    ...{ firstSegment: segment(1), lastSegment: segment(3), error: undefined, createdAt: completeAt, bases: [] },
  }
  const context = (number: number) => `${id}/${segment(number)}`
  for (const number of [1, 2, 3])
    for (const target of [plain, two])
      await target.write(id, segment(number), encrypted(chunks(Buffer.from('text')), key, context(number)), signal)
  const files = createArchiveFiles([one.target, two, three], clock)
  const ledger = {
    key: () => Promise.resolve(key),
    stored: () => Promise.resolve([archive]),
    isStored: () => Promise.resolve(true),
  }
  const copyTo = createArchiveCopier({ ledger, files, clock })
  const [, , last] = files.targets
  if (last !== undefined) await copyTo(last, signal)
  t.same((await three.names(id)).sort(), [1, 2, 3].map(segment))
  t.same(one.state.calls, ['has'], 'it is asked once')
})
