// What Patroni's report shows of a cluster: a commit needs a primary and a replica that confirms it.
import t from 'tap'
import { awaitQuorum, awaitReplication } from '#control-plane/clusters/await-cluster.ts'
import { clusterState, dataHeldBy, withoutFormer, type ClusterState } from '#control-plane/clusters/cluster-state.ts'

interface Reported {
  name: string
  role: string
  state: string
  timeline?: number
  lag?: number | string
}

const primary: Reported = { name: 'postgres-1', role: 'leader', state: 'running', timeline: 3 }
const synchronous: Reported = { name: 'postgres-2', role: 'quorum_standby', state: 'streaming', timeline: 3, lag: 0 }
const other: Reported = { name: 'postgres-3', role: 'quorum_standby', state: 'streaming', timeline: 3, lag: 512 }
const read = (...members: Reported[]): ClusterState => {
  const state = clusterState(JSON.stringify({ members, scope: 't' }))
  if (state === undefined) throw new Error('the report was not read')
  return state
}

t.test('A complete cluster has a quorum, and all replicas follow the primary', async (t) => {
  t.match(read(primary, synchronous, other), {
    primary: 'postgres-1',
    hasQuorum: true,
    notReplicating: [],
    candidates: ['postgres-2', 'postgres-3'],
    members: [
      { name: 'postgres-1', role: 'primary', state: 'running', lagBytes: null, timeline: 3, isSynchronous: false },
      { name: 'postgres-2', role: 'replica', state: 'streaming', lagBytes: 0, timeline: 3, isSynchronous: true },
      { name: 'postgres-3', role: 'replica', state: 'streaming', lagBytes: 512, timeline: 3, isSynchronous: true },
    ],
  })
})

t.test(
  'A member that does not exist any more does not count as a replica, although Patroni still reports it',
  async (t) => {
    const state = read(primary, { ...synchronous, name: 'postgres-2-a' }, { ...other, name: 'postgres-3-b' })
    t.same(state.candidates, ['postgres-2', 'postgres-3'])
    const present = withoutFormer(state, (identity) => identity !== 'postgres-2-a')
    t.same(present.candidates, ['postgres-3'])
    t.same(present.notReplicating, ['postgres-2'])
  },
)

t.test('Members have all data only if each of them follows the primary, whichever former ones do', async (t) => {
  const identities = ['postgres-1-a', 'postgres-2-b', 'postgres-3-c']
  const [one, two, three] = identities.map((name) => ({ ...synchronous, name }))
  if (one === undefined || two === undefined || three === undefined) return
  const leader = (name: string): Reported => ({ ...primary, name })
  const held = (...members: Reported[]) => dataHeldBy(identities, read(...members))
  t.match(held(leader('postgres-1-a'), two, three), { isWhole: true, isLedByOther: false })
  t.match(held(leader('postgres-1-x'), one, two, three), {
    isWhole: true,
    isLedByOther: true,
    candidates: identities,
  })
  for (const [what, members] of Object.entries({
    'a member that copies the data': [leader('postgres-1-a'), two, { ...three, state: 'creating replica' }],
    'a former container that follows in place of the member': [
      leader('postgres-1-a'),
      two,
      { ...three, name: 'postgres-3-x' },
    ],
    'members that confirm nothing': [
      leader('postgres-1-a'),
      { ...two, role: 'replica' },
      { ...three, role: 'replica' },
    ],
    'no primary': [one, two, three],
  }))
    t.equal(held(...members).isWhole, false, what)
})

t.test('A cluster without a primary, or whose replicas confirm nothing, has no quorum', async (t) => {
  for (const [what, state] of Object.entries({
    'no primary': read({ ...primary, role: 'replica', state: 'running' }, synchronous, other),
    'a primary that starts': read({ ...primary, state: 'starting' }, synchronous, other),
    'asynchronous replicas': read(primary, { ...synchronous, role: 'replica' }, { ...other, role: 'replica' }),
    'replicas that do not stream': read(
      primary,
      { ...synchronous, state: 'starting' },
      { ...other, state: 'in archive recovery' },
    ),
    'replicas on an older timeline': read(primary, { ...synchronous, timeline: 2 }, { ...other, timeline: 2 }),
    'no replica': read(primary),
  }))
    t.equal(state.hasQuorum, false, what)
})

t.test('A member that is absent or behind by a timeline does not replicate', async (t) => {
  t.match(read(primary, synchronous), {
    hasQuorum: true,
    notReplicating: ['postgres-3'],
    members: { 2: { name: 'postgres-3', role: 'absent', state: '', lagBytes: null, timeline: null } },
  })
  t.same(read(primary, synchronous, { ...other, timeline: 2 }).notReplicating, ['postgres-3'])
  t.match(read(primary, synchronous, { ...other, lag: 'unknown' }), { members: { 2: { lagBytes: null } } })
})

t.test('Only a replica that confirms commits can take over, the one with the smallest lag first', async (t) => {
  t.same(read(primary, { ...synchronous, lag: 1024 }, other).candidates, ['postgres-3', 'postgres-2'])
  t.same(read(primary, { ...synchronous, lag: 'unknown' }, other).candidates, ['postgres-3', 'postgres-2'])
  t.same(read(primary, { ...synchronous, role: 'replica' }, other).candidates, ['postgres-3'])
  t.same(read(primary, synchronous, { ...other, state: 'starting' }).candidates, ['postgres-2'])
  t.same(read(synchronous, other).candidates, [], 'no member follows a primary that does not run')
})

t.test('Only a report of Patroni is read', async (t) => {
  for (const text of ['', 'null', '{"members":{}}', '{"members":[{"name":1}]}', 'HTTP/1.0 503'])
    t.equal(clusterState(text), undefined, text)
})

t.test('A wait ends with the state, or with the last state that was seen', async (t) => {
  let now = 0
  const clock = {
    now: () => new Date(now),
    sleep: async (milliseconds: number) => {
      now += milliseconds
    },
  }
  const { signal } = new AbortController()
  const reading = (...states: (ClusterState | Error)[]) => {
    let reads = 0
    return async () => {
      const state = states[Math.min(reads++, states.length - 1)]
      if (state === undefined || state instanceof Error) throw state ?? new Error('no state')
      return state
    }
  }
  await awaitQuorum(reading(new Error('not yet'), read(primary), read(primary, synchronous)), 5_000, clock, signal)
  t.equal(now, 1_000, 'two more polls')
  await t.rejects(awaitQuorum(reading(read(primary)), 5_000, clock, signal), {
    code: 'UNHEALTHY',
    message: 'No replica confirms the commits of postgres-1.',
  })
  await t.rejects(awaitQuorum(reading(read(synchronous)), 5_000, clock, signal), {
    message: 'The cluster has no primary.',
  })
  await t.rejects(awaitReplication(reading(read(primary, synchronous)), 5_000, clock, signal), {
    message: 'These members do not follow the primary: postgres-3.',
  })
  await t.rejects(awaitQuorum(reading(new Error('no member responds')), 5_000, clock, signal), {
    message: 'no member responds',
  })
})

t.test('On several hosts, a member has the name of its host, and its former container is another member', async (t) => {
  const on = (member: Reported, host: string): Reported => ({ ...member, name: `${member.name}-${host}` })
  const state = read(on(primary, 'a'), on(synchronous, 'b'), on(other, 'c'))
  t.match(state, { primary: 'postgres-1', hasQuorum: true, candidates: ['postgres-2', 'postgres-3'] })
  t.same(state.identities, { 'postgres-1': 'postgres-1-a', 'postgres-2': 'postgres-2-b', 'postgres-3': 'postgres-3-c' })
  const former = { ...on(primary, 'z'), role: 'replica', state: 'starting' }
  const { reports, ...rest } = state
  t.equal(reports.length, 3)
  t.match(read(former, on(primary, 'a'), on(synchronous, 'b'), on(other, 'c')), rest, 'what serves more counts')
  t.equal(read(primary, synchronous, other).identities, undefined)
})
