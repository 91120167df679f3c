// Every event in every state of a forwarded request, without sockets: its effects, or that it throws.
import t from 'tap'
import {
  badGateway,
  bodyTimeout,
  events,
  malformedRequest,
  paths,
  unreachable,
  type Path,
} from './support/response-events.ts'

const gaveUp = `: ${badGateway.message}`
const stopped = `: ${bodyTimeout.message}`
const clientAway = ': The client closed the connection.'

/** The effects of an event in each state. It throws in a state that is not listed, and has no effect after the end. */
type Effects = Partial<Record<Path, string[]>>

const nothing = { received: [], queued: [], admitted: [], forwarded: [], 'awaiting-slot': [], sending: [], stream: [] }
const rejectedAs = (code: string, close = '') => [`rejection ${code}${close}`]
const concluded = (code: string) => ['ended', 'released', 'over', `end ${code}`]

/** The effects of a rejection by the gateway, in all states before the head was sent. */
function rejectedBefore(code: string, status: number, close = ''): Effects {
  const free = [...rejectedAs(code, close), `rejected ${status}`, ...concluded(code)]
  const paid = [...rejectedAs(code, close), `counted ${status} after 0`, 'used', `egress ${code.length}`]
  return {
    received: free,
    queued: free,
    admitted: [...free.slice(0, 2), 'unused', ...free.slice(2)],
    forwarded: [...paid, ...concluded(code)],
    'awaiting-slot': [...paid, 'ended', 'slot left', 'released', 'over', `end ${code}`],
  }
}

const cutOff = ['ended', 'released', 'over', 'cut']
const streamCutOff = ['ended', 'slot released', 'stream closed', 'released', 'over', 'cut']

/** The effects of the same events when they abort the request, each with what they abort. */
function givenUp(effects: Effects, reason: string): Effects {
  const { received, queued = [], admitted = [], forwarded = [], 'awaiting-slot': awaiting = [] } = effects
  return {
    ...(received === undefined ? {} : { received }),
    queued: [...queued, `wait aborted${reason}`],
    admitted: [...admitted, `wait aborted${reason}`],
    forwarded: [...forwarded, `call aborted${reason}`],
    'awaiting-slot': [...awaiting, `runtime aborted${reason}`],
    sending: [...cutOff, `runtime aborted${reason}`],
    stream: [...streamCutOff, `runtime aborted${reason}`],
  }
}

function both(...effects: string[]): Effects {
  return { admitted: effects, forwarded: effects }
}

const effects: Record<keyof typeof events, Effects> = {
  queue: { received: [], queued: [] },
  admit: { received: [], queued: [] },
  waitFor: { admitted: [], forwarded: [] },
  proceed: { admitted: [], forwarded: [] },
  forwardedTo: { admitted: [], forwarded: [] },
  awaitContinue: both('continue awaited'),
  requestBody: { ...both('body opened', 'continue sent'), 'awaiting-slot': [], sending: [], stream: [] },
  inform: { ...nothing, forwarded: ['interim 103'] },
  begin: { forwarded: ['head 200', 'counted 200 after 0', 'used'] },
  write: { 'awaiting-slot': [], sending: ['egress 3', 'write abc'], stream: ['egress 3', 'write abc'] },
  end: {
    'awaiting-slot': ['slot left', 'head 200', 'counted 200 after 0', 'used', ...concluded('- without length')],
    sending: concluded('- without length'),
    stream: ['ended', 'slot released', 'stream closed', 'released', 'over', 'end - without length'],
  },
  switchProtocols: { forwarded: ['detached', 'counted 101 after 0', 'used', 'ended', 'released', 'over'] },
  reject: rejectedBefore(unreachable.code, 503),
  rejectAndClose: rejectedBefore(unreachable.code, 503, ' close'),
  fail: { ...rejectedBefore(unreachable.code, 503), sending: cutOff, stream: streamCutOff },
  giveUp: givenUp(rejectedBefore(badGateway.code, 502), gaveUp),
  readerIdle: givenUp(rejectedBefore(badGateway.code, 502), gaveUp),
  giveUpAndClose: givenUp(rejectedBefore(bodyTimeout.code, 408, ' close'), stopped),
  readerReady: { ...nothing, sending: ['resumed'], stream: ['resumed'] },
  clientGone: {
    received: ['rejected 499', 'ended', 'released', 'over'],
    queued: ['rejected by quota', 'ended', 'released', 'over', `wait aborted${clientAway}`],
    admitted: ['rejected 499', 'unused', 'ended', 'released', 'over', `wait aborted${clientAway}`],
    forwarded: ['counted 499 after 0', 'used', 'ended', 'released', 'over', `call aborted${clientAway}`],
    'awaiting-slot': [
      'counted 499 after 0',
      'used',
      'ended',
      'slot left',
      'released',
      'over',
      `runtime aborted${clientAway}`,
    ],
    sending: ['ended', 'released', 'over', `runtime aborted${clientAway}`],
    stream: ['ended', 'slot released', 'stream closed', 'released', 'over', `runtime aborted${clientAway}`],
  },
  rejectUnreadable: {
    ...givenUp(rejectedBefore(malformedRequest.code, 400, ' close'), `: ${malformedRequest.message}`),
    'awaiting-slot': [],
    sending: [],
    stream: [],
  },
}

for (const [name, event] of Object.entries(events)) {
  t.test(`${name} in every state`, async (t) => {
    for (const [path, reach] of Object.entries(paths)) {
      const scene = reach()
      const expected = path === 'over' ? [] : effects[name as keyof typeof events][path as Path]
      if (expected === undefined)
        t.throws(() => event(scene), { message: /^A forwarded request cannot / }, `${path}: throws`)
      else event(scene)
      t.same(scene.changes(), expected ?? [], path)
    }
  })
}
