// The watchdog's decisions: which sessions end, in which order, and for how long a login is closed.
import fc from 'fast-check'
import t from 'tap'
import {
  baseMemoryBytes,
  closedMs,
  blamelessMs,
  judgeSessions,
  noHistory,
  type History,
  type Sample,
  type Session,
  settleMs,
  type Verdict,
} from '#control-plane/sessions/judge-sessions.ts'
import { defaultSessionLimits, readSessionLimits } from '#control-plane/sessions/session-limits.ts'

const [a, b] = ['t_aaaaaaaaaaaaaaaaaaaa', 't_bbbbbbbbbbbbbbbbbbbb']
const limits = {
  memory_bytes: 1_000,
  temporary_bytes: 1_000,
  locks: 100,
  wal_bytes: 1_000,
  transaction_seconds: 60,
  idle_seconds: 10,
  snapshot_seconds: 100,
}
const server = { memory_bytes: 2_500, locks_share: 0.5, notifications_share: 0.25 }

const session = (more: Partial<Session> = {}): Session => ({
  pid: 1,
  startedAt: 'begin',
  tenantId: a,
  login: 'admin',
  isActive: true,
  hasWritten: false,
  memoryBytes: 0,
  temporaryBytes: 0,
  locks: 0,
  walBytes: 0,
  transactionMs: 0,
  idleMs: 0,
  snapshot: undefined,
  ...more,
})
const sampleOf = (sessions: Session[], more: Partial<Sample> = {}): Sample => ({
  sessions,
  lockCapacity: 1_000,
  notificationShare: 0,
  ...more,
})
const judge = (sample: Sample, history: History = noHistory, now = 0) =>
  judgeSessions(sample, () => limits, server, history, now)
const withMemory = (bytes: number, more: Partial<Session> = {}) =>
  session({ memoryBytes: baseMemoryBytes + bytes, ...more })

/** Returns the measure and the PIDs by action, as text. */
const done = ({ measure, cancel, terminate }: Verdict) =>
  `${measure}: cancel ${cancel.map(({ pid }) => pid).join()}; terminate ${terminate.map(({ pid }) => pid).join()}`

const idle = { isActive: false, hasWritten: true }
for (const [name, sessions, expected] of [
  ['nothing', [session()], []],
  ['memory within the limit', [withMemory(1_000)], []],
  ['memory', [withMemory(1_001)], ['memory: cancel 1; terminate ']],
  [
    'memory of many backends that need only the base',
    Array.from({ length: 50 }, (_, pid) => withMemory(-9, { pid })),
    [],
  ],
  ['memory of two sessions', [withMemory(600), withMemory(700, { pid: 2 })], ['memory: cancel 2; terminate ']],
  ['memory of an idle session', [withMemory(2_000, idle)], ['memory: cancel ; terminate 1']],
  ['locks', [session({ locks: 101, ...idle })], ['locks: cancel ; terminate 1']],
  ['temporary files', [session({ temporaryBytes: 1_001 })], ['temporary_files: cancel 1; terminate ']],
  [
    'a long transaction that has written',
    [session({ hasWritten: true, transactionMs: 60_001 })],
    ['transaction: cancel 1; terminate '],
  ],
  ['a long transaction that only reads', [session({ transactionMs: 1e9 })], []],
  [
    'an open transaction that has written',
    [session({ ...idle, idleMs: 10_001 })],
    ['idle_transaction: cancel ; terminate 1'],
  ],
  ['an open transaction that only reads', [session({ isActive: false, idleMs: 1e9 })], []],
] as const)
  t.test(`One sample: ${name}`, (t) => {
    t.same(judge(sampleOf([...sessions])).verdicts.map(done), expected)
    t.end()
  })

t.test('A snapshot is too old when it was the same for too long', (t) => {
  const held = sampleOf([session({ snapshot: '7 x' })])
  const first = judge(held).history
  t.same(judge(held, first, 100_000).verdicts, [])
  t.same(judge(held, first, 100_001).verdicts.map(done), ['snapshot: cancel 1; terminate '])
  const moved = judge(sampleOf([session({ snapshot: '8 x' })]), first, 50_000).history
  t.same(judge(sampleOf([session({ snapshot: '8 x' })]), moved, 100_001).verdicts, [])
  t.end()
})

t.test('The write-ahead log of one minute counts', (t) => {
  const first = judge(sampleOf([session({ walBytes: 5_000 })])).history
  const over = sampleOf([session({ walBytes: 6_001 })])
  t.same(judge(over, first, 59_000).verdicts.map(done), ['wal: cancel 1; terminate '])
  t.same(judge(over, first, 61_000).verdicts, [], 'a new minute begins')
  t.end()
})

t.test(
  'The statement is cancelled, then the session is terminated, then the login is closed for longer each time',
  (t) => {
    const over = sampleOf([withMemory(2_000)])
    let history: History = noHistory
    let now = 1
    const actions: string[] = []
    const closed: (number | undefined)[] = []
    for (let nth = 0; nth < 8; nth++) {
      const judged = judge(over, history, now)
      const [verdict] = judged.verdicts
      if (verdict === undefined) return void t.fail('there is a verdict')
      actions.push(verdict.cancel.length > 0 ? 'cancel' : 'terminate')
      closed.push(verdict.closeUntil === undefined ? undefined : verdict.closeUntil - now)
      t.same(judge(over, judged.history, now + settleMs - 1).verdicts, [], 'an action has time to take effect')
      history = judged.history
      now += settleMs
    }
    t.same(actions, ['cancel', ...Array.from({ length: 7 }, () => 'terminate')])
    t.same(closed, [undefined, undefined, ...closedMs, closedMs[3], closedMs[3]])
    const end = Math.max(...[...history.offences.values()].map(({ closedUntil }) => closedUntil))
    t.equal(judge(over, history, end + blamelessMs - 1).verdicts[0]?.cancel.length, 0, 'it is still known')
    t.equal(judge(over, history, end + blamelessMs).verdicts[0]?.cancel.length, 1, 'it begins again')
    t.end()
  },
)

t.test('The login stays open if only the runtime exceeds a limit', (t) => {
  const history: History = { ...noHistory, offences: new Map([[a, { strikes: 9, struckAt: 0, closedUntil: 0 }]]) }
  const [verdict] = judge(sampleOf([withMemory(2_000, { login: 'runtime' })]), history, settleMs).verdicts
  t.match(verdict, { terminate: [{ pid: 1 }], closeUntil: undefined })
  t.end()
})

t.test('Above a limit of the server, the tenant that holds the most is limited', (t) => {
  const tenants = ['c', 'd', 'e'].map((letter) => `t_${letter.repeat(20)}`)
  const sessions = tenants.map((tenantId, pid) => withMemory(900 + pid, { tenantId, pid }))
  t.match(judge(sampleOf(sessions)).verdicts, [
    { tenantId: tenants[2], measure: 'memory', scope: 'server', limit: 2_500 },
  ])
  const locks = Array.from({ length: 6 }, (_, pid) =>
    session({ tenantId: `t_${String(pid).repeat(20)}`, pid, locks: 90 + pid }),
  )
  t.match(judge(sampleOf(locks)).verdicts, [{ tenantId: `t_${'5'.repeat(20)}`, measure: 'locks', scope: 'server' }])
  t.end()
})

t.test('A full queue of NOTIFY ends the oldest transaction, one at a time', (t) => {
  const sessions = [
    session({ transactionMs: 6_000 }),
    session({ tenantId: b, pid: 2, transactionMs: 9_000, isActive: false }),
  ]
  const full = sampleOf(sessions, { notificationShare: 0.3 })
  const first = judge(full, noHistory, 1e6)
  t.same(first.verdicts.map(done), ['notifications: cancel ; terminate 2'])
  t.same(judge(full, first.history, 1e6 + settleMs).verdicts, [], 'the queue has time to become empty')
  t.same(judge(sampleOf([session({ transactionMs: 4_000 })], { notificationShare: 1 }), noHistory, 1e6).verdicts, [])
  t.end()
})

const amount = fc.integer({ min: 0, max: 3_000 })
const anySession = fc.record({
  tenantId: fc.constantFrom(a, b, `t_${'c'.repeat(20)}`),
  login: fc.constantFrom('runtime' as const, 'ddl' as const, 'admin' as const),
  isActive: fc.boolean(),
  hasWritten: fc.boolean(),
  memoryBytes: amount.map((bytes) => bytes + baseMemoryBytes),
  temporaryBytes: amount,
  locks: fc.integer({ min: 0, max: 300 }),
  walBytes: amount,
  transactionMs: fc.integer({ min: 0, max: 100_000 }),
  idleMs: fc.integer({ min: 0, max: 20_000 }),
  snapshot: fc.constantFrom(undefined, '1', '2'),
})
const anySessions = fc
  .array(anySession, { maxLength: 12 })
  .map((all) => all.map((one, pid): Session => ({ pid, startedAt: 'begin', ...one })))

t.test('Whatever a sample contains, each session is ended at most once, and only where a limit is exceeded', (t) => {
  fc.assert(
    fc.property(anySessions, fc.nat(9), (sessions, strikes) => {
      const offences = new Map([[a, { strikes, struckAt: 0, closedUntil: 0 }]])
      const { verdicts } = judge(sampleOf(sessions), { ...noHistory, offences }, settleMs)
      if (new Set(verdicts.map(({ tenantId }) => tenantId)).size !== verdicts.length) return false
      return verdicts.every(({ tenantId, amount: measured, limit, cancel, terminate, closeUntil }) => {
        const ended = [...cancel, ...terminate]
        return (
          measured > limit &&
          ended.length > 0 &&
          new Set(ended).size === ended.length &&
          ended.every((one) => one.tenantId === tenantId) &&
          (closeUntil === undefined || ended.some(({ login }) => login === 'admin'))
        )
      })
    }),
    { numRuns: 500 },
  )
  t.end()
})

t.test('What remains after the ended sessions is within the sums of the plan', (t) => {
  fc.assert(
    fc.property(anySessions, (sessions) => {
      const strict = new Map(
        [a, b, `t_${'c'.repeat(20)}`].map((id) => [id, { strikes: 1, struckAt: 0, closedUntil: 0 }]),
      )
      let rest = sessions
      let history: History = { ...noHistory, offences: strict }
      // Each round ends the sessions over one limit; there are eight limits.
      for (let now = settleMs; now <= 20 * settleMs; now += settleMs) {
        const judged = judge(sampleOf(rest), history, now)
        const ended = new Set(judged.verdicts.flatMap(({ cancel, terminate }) => [...cancel, ...terminate]))
        rest = rest.filter((one) => !ended.has(one))
        history = judged.history
      }
      return [a, b].every((id) => {
        const own = rest.filter(({ tenantId }) => tenantId === id)
        const sum = (of: (one: Session) => number) => own.reduce((total, one) => total + of(one), 0)
        return (
          sum(({ memoryBytes }) => memoryBytes - baseMemoryBytes) <= limits.memory_bytes &&
          sum(({ locks }) => locks) <= limits.locks
        )
      })
    }),
    { numRuns: 200 },
  )
  t.end()
})

t.test('The setting changes the limits that it names', (t) => {
  const read = readSessionLimits('Free.locks=5, *.idle_seconds=1.5,Pro.memory_bytes=none,server.locks_share=0.3')
  t.match(read, {
    plans: { Free: { locks: 5, idle_seconds: 1.5 }, Pro: { idle_seconds: 1.5, memory_bytes: Infinity, locks: 12_000 } },
    server: { locks_share: 0.3, memory_bytes: defaultSessionLimits.server.memory_bytes },
  })
  t.same(readSessionLimits(''), defaultSessionLimits)
  t.throws(() => readSessionLimits('Free.locks'), { message: /"Free.locks" is not/ })
  t.throws(() => readSessionLimits('Gold.locks=1'), { message: /Unknown plan "Gold"/ })
  t.throws(() => readSessionLimits('Free.nothing=1'), { message: /Unknown limit "nothing"/ })
  t.end()
})
