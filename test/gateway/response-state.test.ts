// The states of a forwarded request: where each transition leads, which events are ignored, and which throw.
import t from 'tap'
import { responseHead } from '#gateway/forward/response-head.ts'
import {
  IllegalTransitionError,
  abortableOf,
  admit,
  awaitSlot,
  awaitsHead,
  forward,
  over,
  passBytes,
  proceed,
  queue,
  received,
  requireAdmitted,
  requireForwarded,
  send,
  slotDecided,
  waitFor,
  wasForwarded,
  type ResponseState,
} from '#gateway/forward/response-state.ts'

const wait = { abort: () => undefined }
const call = { abort: () => undefined }
const source = { pause: () => undefined, resume: () => undefined, abort: () => undefined }
const head = responseHead({ 'content-type': 'text/event-stream' }, 'id', 200)
const leave = () => undefined
const inForwarded = forward(admit(received), call)
const inAwaitingSlot = awaitSlot(inForwarded, { source, status: 200, head, leave })

type Phase = ResponseState['phase']

const states: Record<Phase, ResponseState> = {
  received,
  queued: queue(received, wait),
  admitted: waitFor(admit(received), wait),
  forwarded: inForwarded,
  'awaiting-slot': inAwaitingSlot,
  sending: send(inForwarded, source, 10, undefined),
  over,
}
const phases = Object.keys(states) as Phase[]

/** The outcome of an event in a state: the next state, no change, or an error. */
type Outcome = Phase | 'ignored' | 'throws'

function outcome(event: (state: ResponseState) => ResponseState, state: ResponseState): Outcome {
  try {
    const next = event(state)
    return next === state ? 'ignored' : next.phase
  } catch (error) {
    if (error instanceof IllegalTransitionError) return 'throws'
    throw error
  }
}

const events: [string, (state: ResponseState) => ResponseState, Partial<Record<Phase, Outcome>>][] = [
  ['queue', (state) => queue(state, wait), { received: 'queued', queued: 'queued', over: 'ignored' }],
  ['admit', (state) => admit(state), { received: 'admitted', queued: 'admitted', over: 'ignored' }],
  ['waitFor', (state) => waitFor(state, wait), { admitted: 'admitted', forwarded: 'forwarded', over: 'ignored' }],
  ['proceed', (state) => proceed(state), { admitted: 'admitted', forwarded: 'forwarded', over: 'ignored' }],
  ['forward', (state) => forward(state, call), { admitted: 'forwarded', forwarded: 'forwarded', over: 'ignored' }],
  ['awaitSlot', (state) => awaitSlot(state, { source, status: 200, head, leave }), { forwarded: 'awaiting-slot' }],
  ['send', (state) => send(state, source, undefined, undefined), { forwarded: 'sending' }],
]

for (const [name, event, legal] of events) {
  t.test(`${name} leads to its next state, and throws in every other state`, async (t) => {
    for (const phase of phases) t.equal(outcome(event, states[phase]), legal[phase] ?? 'throws', phase)
  })
}

t.test('Steps that require an admitted or a forwarded request throw in other states', async (t) => {
  const passes = (check: (state: ResponseState, event: string) => void) =>
    phases.filter((phase) => outcome((state) => (check(state, 'do it'), state), states[phase]) === 'ignored')
  t.same(passes(requireAdmitted), ['admitted', 'forwarded', 'over'])
  t.same(passes(requireForwarded), ['forwarded'])
  t.throws(() => requireForwarded(received, 'begin its response'), {
    name: 'Error',
    message: 'A forwarded request cannot begin its response in the state "received".',
  })
})

t.test('Each state knows what to abort when it ends', async (t) => {
  t.equal(abortableOf(received), undefined)
  t.equal(abortableOf(states.queued), wait)
  t.equal(abortableOf(states.admitted), wait)
  t.equal(abortableOf(proceed(states.admitted)), undefined, 'a wait that has ended is not aborted')
  t.equal(abortableOf(inForwarded), call)
  t.equal(abortableOf(waitFor(inForwarded, wait)), wait, 'the next try replaces the call')
  t.equal(abortableOf(proceed(inForwarded)), undefined)
  t.equal(abortableOf(inAwaitingSlot), source)
  t.equal(abortableOf(states.sending), source)
  t.equal(abortableOf(over), undefined)
})

t.test('A forwarded request stays forwarded while it waits for its next try', async (t) => {
  t.same(
    phases.filter((phase) => wasForwarded(states[phase])),
    ['forwarded', 'awaiting-slot', 'sending'],
  )
  t.ok(wasForwarded(waitFor(inForwarded, wait)))
  t.ok(wasForwarded(proceed(inForwarded)))
  t.notOk(wasForwarded(proceed(states.admitted)))
})

t.test('A request may be sent again until a head has arrived', async (t) => {
  t.same(
    phases.filter((phase) => awaitsHead(states[phase])),
    ['received', 'queued', 'admitted', 'forwarded'],
  )
})

t.test('A decided slot leaves a forwarded request with its runtime', async (t) => {
  const state = slotDecided(inAwaitingSlot)
  t.equal(state.phase, 'forwarded')
  t.equal(abortableOf(state), source)
})

t.test('The last bytes are known when the runtime has sent a length', async (t) => {
  const known = send(inForwarded, source, 5, undefined)
  t.same([passBytes(known, 2), passBytes(known, 3)], [false, true])
  const unknown = send(inForwarded, source, undefined, undefined)
  t.notOk(passBytes(unknown, 5))
  t.equal(unknown.remaining, undefined)
})
