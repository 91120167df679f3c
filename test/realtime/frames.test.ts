// Random frames: the server replies or closes the connection with a documented status, and never fails.
import fc from 'fast-check'
import t from 'tap'
import { startRuntime } from '#test/support/runtime.ts'
import { until } from '#test/support/until.ts'
import { effort, seed } from '#test/support/effort.ts'
import { createNotes } from './support/notes.ts'
import { RawSocket } from './support/raw-socket.ts'

const topics = fc.oneof(
  fc.constantFrom('realtime:a', 'realtime:b', 'phoenix', 'realtime:', 'room'),
  fc.string({ maxLength: 300 }).map((name) => `realtime:${name}`),
)
const events = fc.oneof(
  fc.constantFrom('phx_join', 'phx_leave', 'broadcast', 'presence', 'access_token', 'heartbeat', 'phx_reply'),
  fc.string(),
)
const changes = fc.record({
  event: fc.constantFrom('*', 'INSERT', 'x'),
  schema: fc.option(fc.constantFrom('public', '*', 'x')),
  table: fc.option(fc.constantFrom('notes', '*', 'x', "'; drop table notes")),
  filter: fc.option(fc.oneof(fc.constantFrom('n=eq.1', 'text=match.(a+)+$', 'n=in.(1,2)'), fc.string())),
})
const payloads = fc.oneof(
  fc.record({ config: fc.record({ postgres_changes: fc.array(changes, { maxLength: 3 }), private: fc.boolean() }) }),
  fc.record({ event: fc.constantFrom('track', 'untrack', 'x'), payload: fc.jsonValue() }),
  fc.record({ access_token: fc.oneof(fc.string(), fc.constant('a.b.c'), fc.jsonValue()) }),
  fc.jsonValue(),
)
const refs = fc.option(
  fc.oneof({ weight: 60, arbitrary: fc.string({ maxLength: 5 }) }, { weight: 1, arbitrary: fc.jsonValue() }),
)
const texts = fc.oneof(
  { weight: 80, arbitrary: fc.tuple(refs, refs, topics, events, payloads).map((frame) => JSON.stringify(frame)) },
  { weight: 1, arbitrary: fc.json() },
  { weight: 1, arbitrary: fc.string() },
)
const field = fc.string({ maxLength: 20 }).map((text) => Buffer.from(text))
const binaries = fc.oneof(
  fc
    .tuple(fc.constantFrom(0, 3, 4), fc.array(field, { minLength: 5, maxLength: 5 }), fc.constantFrom(0, 1, 2), field)
    .map(([kind, fields, encoding, rest]) =>
      Buffer.concat([Buffer.from([kind, ...fields.map(({ length }) => length), encoding]), ...fields, rest]),
    ),
  fc.uint8Array({ maxLength: 60 }).map((bytes) => Buffer.from(bytes)),
)
const frames = fc.array(fc.oneof({ weight: 40, arbitrary: texts }, { weight: 1, arbitrary: binaries }), {
  minLength: 1,
  maxLength: 20,
})

const documented = [1003, 1007, 1009]

t.test('Random frames never make the server fail', { timeout: 3_600_000 }, async (t) => {
  const runtime = await startRuntime(t, { logLevel: 'warn' })
  const tenant = await runtime.addTenant({ limits: { realtime_messages: 100_000 } })
  await createNotes(tenant)
  const wanted = effort({ small: 3_000, full: 50_000 })
  let sent = 0
  const closed = new Map<number, number>()
  const property = fc.asyncProperty(
    fc.constantFrom('1.0.0' as const, '2.0.0' as const),
    fc.infiniteStream(frames).map((stream) => [...stream.take(5)]),
    async (version, groups) => {
      for (const group of groups) {
        if (sent >= wanted) return
        const raw = await RawSocket.open(tenant, { version })
        for (const frame of group) raw.socket.send(frame)
        sent += group.length
        const ref = raw.send('phoenix', 'heartbeat', {})
        await until(
          () => raw.closed !== undefined || raw.frames.some((frame) => frame.topic === 'phoenix' && frame.ref === ref),
          `a reply or the end of the connection after ${JSON.stringify(group)}`,
        )
        if (raw.closed !== undefined && !documented.includes(raw.closed.code))
          throw new Error(`${JSON.stringify(raw.closed)} after ${JSON.stringify(group)}`)
        const code = raw.closed?.code ?? 0
        closed.set(code, (closed.get(code) ?? 0) + 1)
        raw.leave()
      }
    },
  )
  await fc.assert(property, { numRuns: Math.ceil(wanted / 20), seed })
  t.ok(sent >= wanted, `${sent} frames with seed ${seed}`)
  t.ok(closed.has(0) && documented.slice(0, 2).every((code) => closed.has(code)), JSON.stringify([...closed]))
  t.match(await (await RawSocket.open(tenant)).call('phoenix', 'heartbeat', {}), { payload: { status: 'ok' } })
  t.same(runtime.errors, [])
})
