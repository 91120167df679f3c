// Sequences of events in forwarded requests, without sockets. In the last test they are random, and every request is
// counted and released exactly once.
import fc from 'fast-check'
import t from 'tap'
import { IllegalTransitionError } from '#gateway/forward/response-state.ts'
import { effort, seed } from '#test/support/effort.ts'
import {
  abc,
  badGateway,
  eventStream,
  events,
  forwardedIn,
  malformedRequest,
  paths,
  text,
} from './support/response-events.ts'
import { noSlots, startScene, type Conditions, type Scene } from './support/response-scene.ts'

const ofThree = { ...text, 'content-length': '3' }
const gaveUp = `: ${badGateway.message}`
const concluded = (last: string) => ['ended', 'released', 'over', `end ${last}`]
const cutOff = ['ended', 'released', 'over', 'cut']
const streamCutOff = ['ended', 'slot released', 'stream closed', 'released', 'over', 'cut']

t.test('Chunks that arrive while a stream waits for its slot follow the head', async (t) => {
  const scene = paths['awaiting-slot']()
  scene.response.write(abc)
  scene.slot.go()
  t.same(scene.changes(), [
    'slot taken',
    'head 200',
    'counted 200 after 0',
    'used',
    'stream opened',
    'head flushed',
    'egress 3',
    'write abc',
    'resumed',
  ])
  scene.live.endOf('t')
  t.same(scene.changes(), [...streamCutOff, `runtime aborted${gaveUp}`])
  scene.live.endOf('t')
  t.same(scene.changes(), [], 'the stream is no longer live')
})

t.test('A stream without a slot is rejected for the quota, and its runtime is aborted', async (t) => {
  const rejected = ['rejection QUOTA_CONNECTIONS', 'rejected by quota', 'unused', ...concluded('QUOTA_CONNECTIONS')]
  const late = paths['awaiting-slot']()
  late.slot.reject(noSlots)
  t.same(late.changes(), [...rejected, `runtime aborted: ${noSlots.message}`])
  const early = forwardedIn(startScene({ slots: 'used up' }))
  early.response.begin(200, eventStream, early.source)
  t.same(early.changes(), [...rejected, `call aborted: ${noSlots.message}`])
})

t.test('A stream that ends before its slot is decided ignores the decision', async (t) => {
  for (const decide of [({ slot }: Scene) => slot.reject(noSlots), ({ slot }: Scene) => slot.go()]) {
    const scene = paths['awaiting-slot']()
    scene.response.clientGone()
    scene.changes()
    decide(scene)
    t.same(
      scene.changes().filter((what) => what !== 'slot taken'),
      [],
    )
  }
})

t.test('A stream of known length that ends while it waits for its slot ends once', async (t) => {
  const scene = forwardedIn(startScene({ slots: 'awaited' }))
  scene.response.begin(200, { ...eventStream, 'content-length': '3' }, scene.source)
  scene.response.write(abc)
  scene.changes()
  scene.response.end()
  t.same(scene.changes(), ['slot left', 'head 200', 'counted 200 after 0', 'used', 'egress 3', ...concluded('abc')])
})

t.test('The last chunk of a body of known length ends the response', async (t) => {
  const scene = forwardedIn(startScene())
  scene.response.begin(200, ofThree, scene.source)
  scene.changes()
  scene.response.write(abc.subarray(0, 2))
  t.same(scene.changes(), ['egress 2', 'write ab'])
  scene.response.write(abc.subarray(2))
  t.same(scene.changes(), ['egress 1', ...concluded('c')])
  scene.response.end()
  t.same(scene.changes(), [], 'later events of the runtime are ignored')
})

t.test('A response without a body does not wait for its length', async (t) => {
  for (const [conditions, status] of [
    [{ isHead: true }, 200],
    [{}, 204],
    [{}, 304],
  ] as const) {
    const scene = forwardedIn(startScene(conditions))
    scene.response.begin(status, ofThree, scene.source)
    scene.changes()
    scene.response.end()
    t.same(scene.changes(), concluded('- without length'))
  }
  const head = forwardedIn(startScene({ isHead: true }))
  head.response.fail(badGateway)
  t.notOk(
    head.changes().some((what) => what.startsWith('egress')),
    'nor does a rejection',
  )
})

t.test('A response that the runtime marks as rejected costs nothing', async (t) => {
  const scene = forwardedIn(startScene())
  scene.response.begin(401, { 'content-length': '3', 'x-tenantry-rejected': '1' }, scene.source)
  t.same(scene.changes(), ['head 401', 'rejected 401', 'unused'])
  scene.response.write(abc)
  t.same(scene.changes(), concluded('abc'))
})

t.test('A head that cannot be written becomes a 502, and releases its slot', async (t) => {
  for (const [headers, slot] of [
    [text, []],
    [eventStream, ['slot taken', 'slot released']],
  ] as const) {
    const scene = forwardedIn(startScene({ isHeadUnwritable: true }))
    scene.response.begin(200, headers, scene.source)
    t.same(scene.changes(), [
      ...slot,
      'rejection BAD_GATEWAY',
      'counted 502 after 0',
      'used',
      'egress 11',
      ...concluded('BAD_GATEWAY'),
      'runtime aborted: The head of the response cannot be forwarded.',
    ])
  }
})

t.test('The last response of a connection closes the connection', async (t) => {
  const scene = forwardedIn(startScene({ isLast: true }))
  scene.response.begin(200, text, scene.source)
  t.equal(scene.changes()[0], 'head 200 close')
})

t.test('A client that stops reading pauses the runtime, until it reads again or times out', async (t) => {
  const scene = forwardedIn(startScene({ isFull: true }))
  scene.response.begin(200, text, scene.source)
  scene.changes()
  scene.response.write(abc)
  t.same(scene.changes(), ['egress 3', 'write abc', 'paused', 'reader awaited'])
  scene.response.readerReady()
  t.same(scene.changes(), ['resumed'])
  scene.response.readerIdle()
  t.same(scene.changes(), [...cutOff, `runtime aborted${gaveUp}`])
})

t.test('The body is taken once a request is admitted, and a client that stops sending gets 408', async (t) => {
  for (const path of ['received', 'queued', 'awaiting-slot', 'sending', 'stream'] as const) {
    t.throws(() => paths[path]().response.takeBody(), { message: /^A forwarded request cannot / }, path)
  }
  for (const path of ['admitted', 'forwarded'] as const) {
    const scene = paths[path]()
    scene.response.takeBody()
    scene.stopSending()
    t.equal(scene.changes()[1], 'rejection REQUEST_TIMEOUT close', path)
  }
})

t.test('A request that has arrived completely cannot be unreadable', async (t) => {
  const whole = forwardedIn(startScene({ hasWholeRequest: true }))
  t.notOk(whole.response.rejectUnreadable(malformedRequest))
  t.ok(paths.forwarded().response.rejectUnreadable(malformedRequest))
  t.notOk(paths.sending().response.rejectUnreadable(malformedRequest))
})

t.test('Any sequence of events counts and releases everything exactly once', async (t) => {
  const more: [string, (scene: Scene) => void][] = [
    ['begin a stream', ({ response, source }) => response.begin(200, eventStream, source)],
    ['begin three bytes', ({ response, source }) => response.begin(200, ofThree, source)],
    ['take the body', ({ response }) => void response.takeBody()],
    ['read the body', ({ response }) => response.readPromptBody(() => undefined)],
    ['grant a slot', ({ slot }) => slot.go()],
    ['reject a slot', ({ slot }) => slot.reject(noSlots)],
    ['stop sending', ({ stopSending }) => stopSending()],
    ['end what is live', ({ live }) => live.endAll(0)],
  ]
  const conditions = fc.record<Conditions>({
    isHead: fc.boolean(),
    isFull: fc.boolean(),
    isHeadUnwritable: fc.boolean(),
    slots: fc.constantFrom('free', 'awaited', 'used up'),
  })
  const steps = fc.array(fc.constantFrom(...Object.entries(events), ...more), {
    maxLength: 12,
  })
  let ended = 0
  fc.assert(
    fc.property(conditions, steps, fc.boolean(), (given, chosen, isForwarded) => {
      const scene = isForwarded ? forwardedIn(startScene(given)) : startScene(given)
      const times = (what: RegExp) => scene.done.filter((one) => what.test(one)).length
      let slotIsOpen = true
      for (const [name, event] of chosen) {
        // The quota decides on each slot once, and not after the request has left it.
        if (name.endsWith(' a slot')) {
          if (!slotIsOpen || times(/^slot awaited$/) === 0 || times(/^slot left$/) > 0) continue
          slotIsOpen = false
        }
        const wasOver = scene.response.isOver
        const before = scene.done.length
        try {
          event(scene)
        } catch (error) {
          if (!(error instanceof IllegalTransitionError) || scene.done.length > before) throw error
        }
        if (wasOver && name !== 'take the body' && scene.done.length > before) throw new Error(`${name} after the end`)
      }
      const open = scene.response.isOver ? 0 : 1
      if (open === 0) ended++
      const counts = times(/^(?:counted|rejected)/)
      const once: [string, boolean][] = [
        ['counted', counts <= 1 && counts >= 1 - open],
        ['settled', times(/^(?:used|unused)$/) <= Math.min(1, counts)],
        ['ended', times(/^ended$/) === 1 - open && times(/^released$/) === 1 - open && times(/^over$/) === 1 - open],
        ['closed', times(/^(?:end |cut|detached)/) <= 1],
        ['slots', times(/^slot taken$/) - times(/^slot released$/) === (times(/^stream opened$/) === 1 ? open : 0)],
        ['streams', times(/^stream opened$/) - times(/^stream closed$/) === Math.min(open, times(/^stream opened$/))],
      ]
      for (const [what, holds] of once) if (!holds) throw new Error(`${what}: ${scene.done.join(', ')}`)
    }),
    { seed, numRuns: effort({ small: 2_000, full: 200_000 }) },
  )
  t.ok(ended > 0, `${ended} requests ended`)
})
