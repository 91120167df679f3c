// Many tenants and users share two connections, while sessions are killed and callers disconnect at any time. Every row
// carries a canary that names its owner. No response shows a canary to a caller who may not see it, and every
// acknowledged write is stored once.
import pg from 'pg'
import t from 'tap'
import { chanceOf } from '#test/simulation/chance.ts'
import { effort, seed } from '#test/support/effort.ts'
import { send, startRuntime, type ApiResponse } from '#test/support/runtime.ts'
import { abandon } from './support/abandon.ts'
import { repeat, type Operation } from './support/canary-operation.ts'
import { addMembers, collections, kinds, maySee, pattern, type Kind, type Member } from './support/canary-tenants.ts'

t.test('Tenants and users who share two connections', async (t) => {
  const counts = {
    tenants: effort({ small: 8, full: 20 }),
    users: 3,
    requests: effort({ small: 4_000, full: 100_000 }),
    workers: 16,
  }
  const chance = chanceOf(seed)
  // A slow machine must not be mistaken for a blocked pool.
  const runtime = await startRuntime(t, {
    connections: { total: 2, perTenant: 2, waitMilliseconds: 120_000, connectMilliseconds: 60_000 },
  })
  const canary = (at: number, user: number, kind: Kind) => `cn-${at}-${user}-${kind}-${chance.hex(12)}`
  const members = await addMembers(runtime, counts, canary)

  /** All posts whose creation was acknowledged; posts are never deleted. */
  const posts: { at: number; id: string }[] = []
  /** IDs of each collection and tenant that a response has contained, also of deleted rows. */
  const ids = new Map<string, string[]>()
  const idsOf = (at: number, collection: string) => {
    const key = `${at} ${collection}`
    const known = ids.get(key) ?? []
    ids.set(key, known)
    return known
  }
  const nowhere = '00000000-0000-4000-8000-000000000000'
  const anyId = (at: number, collection: string) =>
    idsOf(at, collection).length === 0 ? nowhere : chance.pick(idsOf(at, collection))

  const operations: ((member: Member) => Operation)[] = [
    ...repeat(3, () =>
      reads(
        (at) =>
          `${collectionOf()}?select=*&order=text.desc&limit=${1 + chance.below(50)}&offset=${chance.below(at + 3)}`,
        [200, 206, 416],
      ),
    ),
    ...repeat(1, () => reads(() => `${collectionOf()}?cursor=&order=rank&limit=5`)),
    ...repeat(1, () => reads(() => `notes?select=text,remarks(text),n:remarks(count())&order=rank.nullsfirst`)),
    ...repeat(1, () => reads(() => 'remarks?select=*,notes!inner(*)')),
    ...repeat(1, () =>
      reads(() => `${collectionOf()}?or=(rank.gt.3,text.like.*private*,text.like.*public*)&select=text,rank,data->>a`),
    ),
    ...repeat(1, () =>
      reads(
        () => chance.pick(['event_log', 'schemas', 'storage_buckets', 'storage_objects', 'function_invocations', '']),
        [200, 206],
      ),
    ),
    ...repeat(2, () => reads(() => chance.pick(['rpc/mine', 'rpc/context']))),
    ...repeat(1, () => (): Operation => ({
      method: 'GET',
      path: `things?select=*&order=text.desc&limit=${1 + chance.below(1_500)}`,
      headers: { 'accept-profile': 'own' },
      right: [200],
    })),
    ...repeat(1, () => (member: Member): Operation => ({
      method: 'POST',
      path: 'things',
      body: {
        text: canary(member.at, member.user ?? 0, 'private'),
        ...(member.user === 0 ? { owner: 'service' } : {}),
      },
      headers: { 'content-profile': 'own', prefer: 'return=representation' },
      right: [201, 400, 401, 403],
    })),
    ...repeat(3, () => (member: Member): Operation => {
      const collection = collectionOf()
      return { method: 'GET', path: `${collection}/${anyId(member.at, collection)}`, right: [200, 404] }
    }),
    // IDs of another tenant, which are always absent.
    ...repeat(1, () => (member: Member): Operation => {
      const collection = collectionOf()
      return {
        method: chance.pick(['GET', 'DELETE']),
        path: `${collection}/${anyId((member.at + 1) % counts.tenants, collection)}`,
        right: [404],
      }
    }),
    ...repeat(5, () => (member: Member) => inserts(member, 1)),
    ...repeat(2, () => (member: Member) => inserts(member, 2 + chance.below(30))),
    ...repeat(2, () => (member: Member): Operation => {
      const collection = collectionOf()
      const [row] = rows(member, collection, 1)
      const known = anyId(member.at, collection)
      return {
        method: 'POST',
        path: `${collection}?on_conflict=id`,
        body: { ...row, id: known === nowhere || chance.happens(0.2) ? uuid() : known },
        headers: { prefer: `resolution=${chance.pick(['merge', 'ignore'])}-duplicates,return=representation` },
        right: [200, 201, 401, 403],
      }
    }),
    ...repeat(3, () => (member: Member): Operation => {
      // The service does not know the owner of the row.
      const collection = member.user === 0 ? 'ledger' : collectionOf()
      const [row] = rows(member, collection, 1)
      return {
        method: 'PATCH',
        path: `${collection}/${anyId(member.at, collection)}`,
        body: { text: row?.text },
        right: [200, 404],
        writes: { collection, texts: [row?.text ?? ''] },
      }
    }),
    ...repeat(1, () => (): Operation => ({
      method: 'PATCH',
      path: `${collectionOf()}?rank=eq.${chance.below(10)}`,
      body: { data: { a: chance.below(100) } },
      headers: { prefer: 'return=representation,count=exact' },
      right: [200],
    })),
    ...repeat(2, () => (member: Member): Operation => {
      const collection = chance.pick(['notes', 'board', 'ledger'])
      return { method: 'DELETE', path: `${collection}/${anyId(member.at, collection)}`, right: [200, 404] }
    }),
    ...repeat(1, () => (): Operation => ({
      method: 'DELETE',
      path: `${chance.pick(['notes', 'board'])}?rank=eq.${chance.below(10)}`,
      headers: { prefer: 'return=representation' },
      right: [200],
    })),
    ...repeat(1, () => (member: Member): Operation => ({
      method: 'POST',
      path: 'remarks',
      body: {
        note: anyId(member.at, 'notes'),
        text: canary(member.at, member.user ?? 0, 'private'),
        ...(member.user === 0 ? { owner: 'service' } : {}),
      },
      headers: { prefer: 'return=representation' },
      right: [201, 401, 403, 409],
    })),
    // Errors of each kind, whose messages could disclose too much.
    ...repeat(2, () => (member: Member): Operation => {
      const collection = collectionOf()
      const [row] = rows(member, collection, 1)
      const id = idsOf(member.at, collection)[0]
      const wrong = (body: object, status: number[]): Operation => ({
        method: 'POST',
        path: collection,
        body,
        right: [...status, 401, 403],
        writes: { collection, texts: status[0] === 409 ? [] : [String(row?.text)] },
      })
      return chance.pick<() => Operation>([
        () => wrong({ ...row, id: id ?? uuid() }, [409, 201]),
        () => wrong({ ...row, rank: 'x' }, [400]),
        () => wrong({ rank: 1 }, [400]),
        () => wrong({ ...row, none: 1 }, [400]),
        () => wrong([row ?? {}, { rank: 2 }], [400]),
        () => ({
          ...wrong({}, [400]),
          body: `{"text":"${String(row?.text)}"`,
          headers: { 'content-type': 'application/json' },
        }),
        () => ({ method: 'GET', path: `${collection}?rank=eq.x&text=eq.${String(row?.text)}`, right: [400] }),
        () => ({ method: 'GET', path: `${collection}?id=eq.x`, right: [400] }),
        () => ({ method: 'GET', path: `${collection}?select=none,remarks(none)`, right: [400] }),
        () => ({ method: 'GET', path: 'nothing', right: [404] }),
        () => ({ method: 'GET', path: `${collection}?select=text::int`, right: [200, 400] }),
        () => ({ method: 'PATCH', path: collection, body: { rank: 1 }, right: [400] }),
        () => ({ method: 'POST', path: 'rpc/complain', body: { word: String(row?.text) }, right: [400] }),
        () => ({ method: 'POST', path: 'rpc/none', body: {}, right: [404] }),
      ])()
    }),
    ...repeat(1, () => (member: Member): Operation => {
      // Acts for another user, which only the service may.
      const other = members.find(
        ({ at, user }) => at === member.at && user !== undefined && user > 0 && user !== member.user,
      )
      const text = canary(member.at, member.user ?? 0, 'private')
      if (member.user === 0 || other === undefined) return inserts(member, 1)
      return {
        method: 'POST',
        path: 'notes',
        body: { owner: other.sub, text },
        right: [401, 403],
        writes: { collection: 'notes', texts: [text] },
      }
    }),
  ]

  function collectionOf(): string {
    return chance.pick(Object.keys(collections))
  }
  function uuid(): string {
    return `${chance.hex(8)}-${chance.hex(4)}-4${chance.hex(3)}-8${chance.hex(3)}-${chance.hex(12)}`
  }
  function reads(path: (at: number) => string, right: number[] = [200]): (member: Member) => Operation {
    return ({ at }) => ({
      method: chance.happens(0.1) ? 'HEAD' : 'GET',
      path: path(at),
      headers: chance.happens(0.3) ? { prefer: 'count=exact' } : {},
      right: [...right, 206],
    })
  }
  function rows(
    { at, user = 0 }: Member,
    collection: string,
    count: number,
  ): { text: string; rank: number; data: object; owner?: string }[] {
    const { kind } = collections[collection] ?? { kind: 'service' }
    // The service writes for some user of the tenant.
    const of = user === 0 && kind !== 'service' ? 1 + chance.below(counts.users) : user
    const sub = members.find((member) => member.at === at && member.user === of)?.sub ?? ''
    return Array.from({ length: count }, () => ({
      text: canary(at, of, kind),
      rank: chance.below(10),
      data: { a: canary(at, of, kind) },
      ...(user === 0 && (kind === 'private' || kind === 'public') ? { owner: sub } : {}),
    }))
  }
  function inserts(member: Member, count: number): Operation {
    const collection = collectionOf()
    const made = rows(member, collection, count)
    return {
      method: 'POST',
      path: collection,
      body: count === 1 && made[0] !== undefined ? made[0] : made,
      headers: { prefer: 'return=representation' },
      right: [201, 401, 403],
      writes: { collection, texts: made.map(({ text }) => text) },
      learn: (response) => {
        const known = idsOf(member.at, collection)
        for (const row of response.list()) {
          known.push(String(row['id']))
          if (collection === 'posts') posts.push({ at: member.at, id: String(row['id']) })
        }
        // Only the newest IDs are retained, so that most requested rows exist.
        known.splice(0, Math.max(0, known.length - 300))
      },
    }
  }

  const seen = { responses: 0, own: 0, left: 0, byStatus: new Map<number, number>(), aborted: 0, rejectedLists: 0 }
  const leaks: string[] = []
  const wrong: string[] = []
  const failures: { at: number; until: number; what: string }[] = []
  /** Rejected texts of each tenant and collection. */
  const rejected = new Map<string, string[]>()

  const poll = (member: Member, operation: Operation, response: ApiResponse) => {
    seen.responses++
    seen.byStatus.set(response.status, (seen.byStatus.get(response.status) ?? 0) + 1)
    if (response.headers['x-left'] !== undefined) seen.left++
    const all = `${JSON.stringify(response.headers)}\n${response.text}`
    for (const [whole, at, user, kind] of all.matchAll(pattern)) {
      if (kinds.some((known) => known === kind && maySee(member, Number(at), Number(user), known))) seen.own++
      else leaks.push(`${operation.method} ${operation.path} of ${member.at}/${member.user}: ${whole} in ${all}`)
    }
  }
  const perform = async (member: Member) => {
    const operation = chance.pick(operations)(member)
    const { method, path, body, headers, right, writes, learn } = operation
    const all = { ...member.headers, ...headers }
    if (chance.happens(0.08)) {
      seen.aborted++
      await abandon(member.tenant.port, method, `/rest/v1/${path}`, all, body, chance)
      return
    }
    const response = await send(member.tenant.port, method, `/rest/v1/${path}`, all, body).catch(String)
    if (typeof response === 'string') {
      // A strike cuts a list that is being streamed; its status was sent before.
      const what = `${method} ${path} of ${member.at}/${member.user}: ${response}`
      if (method === 'GET') failures.push({ at: member.at, until: performance.now(), what })
      else wrong.push(what)
      return
    }
    poll(member, operation, response)
    const what = `${method} ${path} of ${member.at}/${member.user}: ${response.status} ${response.text.slice(0, 300)}`
    if (response.status >= 500) {
      if (response.headers['retry-after'] === '1' && response.status === 503) {
        // With two connections, one long list is sent at a time.
        if (method === 'GET' && /Too many long responses/.test(response.text)) seen.rejectedLists++
        else failures.push({ at: member.at, until: performance.now(), what })
      } else wrong.push(what)
      return
    }
    if (!right.includes(response.status)) wrong.push(what)
    if (response.status === 201) learn?.(response)
    if (response.status >= 400 && writes !== undefined) {
      const key = `${member.at} ${writes.collection}`
      rejected.set(key, [...writes.texts, ...(rejected.get(key) ?? [])])
    }
  }

  // Kills sessions and cancels statements of any tenant, whatever they run.
  const superuser = new pg.Client({ connectionString: runtime.postgres.url('homes') })
  await superuser.connect()
  t.teardown(() => superuser.end())
  const strikes: { at: number; from: number; what: string }[] = []
  const strike = async () => {
    const what = chance.pick(['pg_terminate_backend', 'pg_terminate_backend', 'pg_cancel_backend'])
    const from = performance.now()
    // Busy sessions first, because most are idle most of the time.
    const { rows } = await superuser.query<{ usename: string }>(
      `select usename, ${what}(pid)
        from (select pid, usename from pg_stat_activity where usename ~ '^t_[0-9a-f]{20}$'
        order by state <> 'active', query_start desc limit 1) one`,
    )
    for (const { usename } of rows)
      strikes.push({ at: members.find(({ tenant }) => tenant.id === usename)?.at ?? -1, from, what })
  }

  let left = counts.requests
  let isStriking = false
  await Promise.all(
    Array.from({ length: counts.workers }, async () => {
      while (left-- > 0) {
        // A burst of requests to one tenant, so that its connections serve one user after the other.
        await perform(chance.pick(members))
        if (isStriking || !chance.happens(0.1)) continue
        isStriking = true
        await strike()
        isStriking = false
      }
    }),
  )

  t.comment(
    `seed ${seed}: ${seen.responses} responses (${[...seen.byStatus]
      .sort()
      .map(([status, count]) => `${status}: ${count}`)
      .join(
        ', ',
      )}), ${seen.aborted} abandoned, ${seen.own} own canaries, ${strikes.length} strikes, ${failures.length} failed requests`,
  )
  t.comment(`${seen.rejectedLists} rejected lists`)
  for (const { what } of failures.slice(0, 5)) t.comment(what)
  t.same(leaks.slice(0, 3), [], "no response has a canary of another tenant's or user's")
  t.same(wrong.slice(0, 5), [], 'every response has an expected status')
  // Each strike affects one session, and a session serves one round trip at a time.
  const unexplained = failures.filter(({ at, until }) => {
    const cause = strikes.findLastIndex((strike) => strike.at === at && strike.from <= until)
    if (cause >= 0) strikes.splice(cause, 1)
    return cause < 0
  })
  t.same(unexplained, [], 'every failed request was affected by a strike')
  t.ok(seen.left > counts.requests / 10, 'functions before requests set headers')
  t.ok(seen.own > counts.requests / 2 && posts.length > counts.requests / 100, 'callers saw their own canaries')
  t.ok(strikes.length > counts.requests / 100 && seen.aborted > counts.requests / 20, 'and many strikes occurred')

  for (const { tenant, at } of members.filter(({ user }) => user === undefined)) {
    for (const [collection, { kind }] of Object.entries(collections)) {
      const hasOwner = kind === 'private' || kind === 'public'
      const found = await tenant.rows(
        `select id, text, data::text, tenant_id, ${hasOwner ? 'owner' : 'null as owner'} from ${collection}`,
      )
      const texts = found.map((row) => String(row['text']))
      const subs = new Map(members.filter((member) => member.at === at).map(({ user, sub }) => [sub, user]))
      const misplaced = found.filter(({ text, data, owner, tenant_id }) => {
        const marks = [...`${String(text)} ${String(data)}`.matchAll(pattern)]
        const ofOwner = (user: string | undefined) => !hasOwner || subs.get(String(owner)) === Number(user)
        return (
          tenant_id !== tenant.id ||
          marks.length === 0 ||
          !marks.every(([, tenantAt, user, of]) => Number(tenantAt) === at && of === kind && ofOwner(user))
        )
      })
      t.same(misplaced.slice(0, 3), [], `${at} ${collection}: every row has the owner of its canary`)
      t.equal(new Set(texts).size, texts.length, `${at} ${collection}: nothing was stored twice`)
      const forbidden = new Set(rejected.get(`${at} ${collection}`))
      t.same(
        texts.filter((text) => forbidden.has(text)),
        [],
        `${at} ${collection}: no rejected text was stored`,
      )
      if (collection !== 'posts') continue
      const present = new Set(found.map((row) => String(row['id'])))
      t.same(
        posts.filter((post) => post.at === at && !present.has(post.id)),
        [],
        `${at} posts: all acknowledged posts are present`,
      )
    }
  }
  t.same(
    runtime.errors.filter((line) => !/57P01|57014|terminat|connection|ECONN|EPIPE/i.test(line)).slice(0, 3),
    [],
    'and the log contains only errors of strikes',
  )
})
