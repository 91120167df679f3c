// The choice of a replica that has every acknowledged change: examples, and random histories of a cluster.
import t from 'tap'
import {
  freshReplica,
  isFresh,
  readPosition,
  type ReplicaPosition,
} from '#tenant-runtime/database/replicas/replica-position.ts'
import { effort, seed } from '#test/support/effort.ts'

const at = (server: string, stored: number, replayed = stored, timeline = '00000001'): ReplicaPosition => ({
  server,
  timeline,
  stored: BigInt(stored),
  replayed: BigInt(replayed),
  members: 1,
})

t.test('A position is read of a replica that has received something since its start', async (t) => {
  const row = { server: '10.0.0.2:5432', timeline: '00000002', received: '1/0A', replayed: '1/2', members: 3 }
  const { server, timeline, members } = row
  t.same(readPosition(row), { server, timeline, stored: 0x10000000an, replayed: 0x100000002n, members })
  t.equal(
    readPosition({ ...row, replayed: '1/B' })?.stored,
    0x10000000bn,
    'after a restart, it has replayed more than it received',
  )
  t.equal(readPosition({ ...row, received: null }), undefined)
  t.equal(readPosition({ ...row, replayed: null }), undefined)
  t.equal(readPosition(undefined), undefined, 'a primary')
})

t.test('The replica with the greatest stored position is chosen, when it is known of all but one member', async (t) => {
  t.same(freshReplica([at('a', 5), at('b', 7)], 3), { server: 'b', timeline: '00000001', upTo: 7n })
  t.same(
    freshReplica([at('a', 7), at('b', 7, 6)], 3),
    { server: 'a', timeline: '00000001', upTo: 7n },
    'one that has replayed it',
  )
  t.same(freshReplica([at('a', 5), at('b', 7, 6)], 3)?.server, 'b', 'one that will replay it')
  t.equal(freshReplica([at('a', 5)], 3), undefined)
  t.equal(freshReplica([at('a', 5), at('a', 7)], 3), undefined, 'the same server twice')
  t.equal(freshReplica([at('a', 5), at('b', 7, 7, '00000002')], 3), undefined)
  t.equal(freshReplica([at('a', 5), at('b', 7)], 4), undefined)
  t.equal(freshReplica([at('a', 5), { ...at('b', 7), members: 4 }], 3), undefined, 'a member that only a replica knows')
  t.equal(freshReplica([at('a', 5)], 1), undefined)
  const replica = { server: 'b', timeline: '00000001', upTo: 7n }
  t.ok(isFresh(replica, at('b', 8)))
  t.notOk(isFresh(replica, at('b', 8, 6)))
  t.notOk(isFresh(replica, at('a', 8)))
  t.notOk(isFresh(replica, at('b', 8, 8, '00000002')))
  t.notOk(isFresh(replica, undefined))
})

/** Returns numbers from 0 to 1 that the seed determines (mulberry32). */
function seeded(state: number): () => number {
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

interface Member {
  server: string
  /** The records of its log, which name the timeline on which they were written. */
  log: { timeline: number; id: number }[]
  replayed: number
  timeline: number
  isPrimary: boolean
  isUp: boolean
}

t.test(`In random histories of a cluster, no chosen replica lacks an acknowledged change (seed ${seed})`, async (t) => {
  const random = seeded(seed)
  const below = (max: number) => Math.floor(random() * max)
  let chosen = 0
  for (let history = 0; history < effort({ small: 400, full: 20_000 }); history++) {
    const members: Member[] = ['a', 'b', 'c'].map((server, n) => ({
      ...{ server, log: [], replayed: 0, timeline: 1, isPrimary: n === 0, isUp: true },
    }))
    const acknowledged = new Set<number>()
    let [next, timeline] = [0, 1]
    /** Lets a replica receive some more of a primary's log, after it has left what that one does not have. */
    const receive = (from: Member, to: Member) => {
      const common = to.log.findIndex(({ id }, n) => from.log[n]?.id !== id)
      if (common >= 0 && (to.replayed > common || to.timeline === from.timeline)) return
      if (common >= 0) to.log.length = common
      if (to.log.length >= from.log.length) return
      // It replays all of its log before it begins another timeline.
      if (to.timeline !== from.timeline) to.replayed = to.log.length
      to.timeline = from.timeline
      to.log.push(...from.log.slice(to.log.length, to.log.length + 1 + below(3)))
    }
    for (let step = 0; step < 60; step++) {
      const primary = members.find(({ isPrimary, isUp }) => isPrimary && isUp)
      const replicas = members.filter((member) => !member.isPrimary && member.isUp)
      const what = below(10)
      if (what < 3 && primary !== undefined) primary.log.push({ timeline: primary.timeline, id: next++ })
      else if (what < 6 && primary !== undefined) {
        for (const replica of replicas) if (random() < 0.6) receive(primary, replica)
        // A commit is acknowledged when the primary and one replica have stored it.
        for (const replica of replicas)
          for (const { id } of replica.log) if (primary.log.some((one) => one.id === id)) acknowledged.add(id)
      } else if (what === 6)
        for (const replica of replicas) replica.replayed += below(replica.log.length - replica.replayed + 1)
      else if (what === 7 && primary !== undefined && random() < 0.4) primary.isUp = false
      else if (what === 8 && primary === undefined && replicas.length === 2) {
        // Only one that sees another member, and has as much as that one, is elected.
        const [one, other] = replicas as [Member, Member]
        const isBehind =
          one.timeline < other.timeline || (one.timeline === other.timeline && one.log.length < other.log.length)
        const elected = isBehind ? other : one
        elected.isPrimary = true
        elected.timeline = ++timeline
        elected.replayed = elected.log.length
      } else if (what === 9) {
        const former = members.find(({ isPrimary, isUp }) => isPrimary && !isUp)
        // It returns as a replica with everything that it wrote, also if another one was elected meanwhile.
        if (former !== undefined) Object.assign(former, { isPrimary: false, isUp: true, replayed: former.log.length })
      }
      const positions = members
        .filter(({ isPrimary, isUp }) => !isPrimary && isUp)
        .map(({ server, log, replayed, timeline }) =>
          at(server, log.length, replayed, String(timeline).padStart(8, '0')),
        )
      const replica = freshReplica(positions, 3)
      const member = members.find(({ server }) => server === replica?.server)
      if (replica === undefined || member === undefined) continue
      chosen++
      const visible = new Set(member.log.slice(0, Number(replica.upTo)).map(({ id }) => id))
      const lost = [...acknowledged].filter((id) => !visible.has(id))
      if (lost.length > 0) t.fail(`history ${history}, step ${step}: ${lost.join(' ')} not visible`)
    }
  }
  t.ok(chosen > 1_000, `${chosen} choices`)
})
