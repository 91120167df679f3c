// Old entries of the audit log are removed. The remaining ones are still verified, and the database allows no other removal.
import pg from 'pg'
import t from 'tap'
import { removeOldEntries } from '#control-plane/audit/jobs.ts'
import { createOldEntries } from '#control-plane/audit/store-old-entries.ts'
import { createAuditLog } from '#control-plane/audit/store.ts'
import { appendToChain, auditHash } from '#control-plane/platform/audit-chain.ts'
import { systemClock } from '#control-plane/platform/clock.ts'
import { LeadershipLost } from '#control-plane/platform/leadership-lost.ts'
import { openDatabase, type Database } from '#control-plane/platform/database.ts'
import { until } from '#test/support/until.ts'
import { startApi } from '#test/support/control-plane/api.ts'

interface Entry {
  seq: number
  action: string
  detail: Record<string, unknown>
}

const dayMilliseconds = 86_400_000
const now = () => new Date()

const api = await startApi(t, { control: false, jobs: true })
const database = openDatabase(api.controlUrl)
t.teardown(() => database.$disconnect())
const store = createOldEntries(database, now)

const epoch = async () => BigInt(String((await api.sql('select epoch from installation'))[0]?.['epoch']))
const removeOld = async (days: number, max: number) => store.remove(await epoch(), days, max)
const verify = async () => (await api.call('GET', '/v1/audit/verify')).body
const entries = async (query: string) =>
  ((await api.call('GET', `/v1/audit?${query}`)).body as { entries: Entry[] }).entries
const readSeqs = async () => (await api.sql('select seq from audit_log order by seq')).map(({ seq }) => Number(seq))

/** Appends this many entries with a time this many days ago. */
function append(count: number, days: number): Promise<void> {
  const notes = Array.from({ length: count }, (_, index) => ({
    action: 'tenant.update',
    target: `t_${days}_${index}`,
    detail: {},
  }))
  const at = () => new Date(Date.now() - days * dayMilliseconds)
  return database.$transaction((transaction) => appendToChain(transaction, 'system', notes, at))
}

/** Replaces the log by this many entries of 400 days ago, and this many of today after them. */
async function fillLog(old: number, recent: number): Promise<void> {
  await api.sql('alter table audit_log disable trigger all; delete from audit_log')
  await api.sql('alter table audit_log enable trigger all')
  await append(old, 400)
  await append(recent, 0)
}

t.test('The oldest entries are removed in batches, and the remaining chain is verified after each', async (t) => {
  await fillLog(25, 5)
  const before = await readSeqs()
  const hashes = (await api.sql('select hash from audit_log order by seq')).map(({ hash }) => hash)
  t.same(await verify(), { whole: true, entries: 30, broken_at: null })
  const batches = [10, 10, 5, 0]
  for (const [index, removed] of batches.entries()) {
    t.equal(await removeOld(365, 10), removed)
    const left = 30 - batches.slice(0, index + 1).reduce((sum, count) => sum + count) + Math.min(index + 1, 3)
    t.same(await verify(), { whole: true, entries: left, broken_at: null }, `${left} entries are left`)
  }
  const [report] = await entries('limit=1')
  t.match(report, { actor: 'system', action: 'audit.remove', target: 'audit_log' })
  t.same(report?.detail, { entries: 5, last_seq: before[24], last_hash: hashes[24], days: 365 })
  await append(3, 0)
  t.match(await verify(), { whole: true, entries: 11 }, 'the chain continues')

  const seen: Entry[] = []
  for (;;) {
    const last = seen.at(-1)
    const page = await entries(last === undefined ? 'limit=4' : `limit=4&before=${last.seq}`)
    seen.push(...page)
    if (page.length < 4) break
  }
  t.same(
    seen.map(({ seq }) => seq),
    (await readSeqs()).reverse(),
    'pages contain all remaining entries',
  )
  t.same(await entries(`before=${before[20]}`), [], 'a page of removed entries is empty')
})

t.test('An entry stays while an older entry of the chain stays', async (t) => {
  await fillLog(3, 2)
  await append(4, 500)
  t.equal(await removeOld(365, 1_000), 3)
  t.equal(await removeOld(365, 1_000), 0)
  t.same(await verify(), { whole: true, entries: 7, broken_at: null })
})

t.test('All entries can be removed but the one that reports it, and a later removal begins there', async (t) => {
  await fillLog(3, 0)
  t.equal(await removeOld(365, 1_000), 3)
  t.same(await verify(), { whole: true, entries: 1, broken_at: null })
  await append(2, 0)
  t.same(await verify(), { whole: true, entries: 3, broken_at: null })
})

t.test('A former leader removes nothing', async (t) => {
  await fillLog(3, 2)
  await t.rejects(store.remove((await epoch()) - 1n, 365, 10), new LeadershipLost('Another control plane leads.'))
  t.same(await verify(), { whole: true, entries: 5, broken_at: null })
})

t.test('The database rejects every other removal', async (t) => {
  await fillLog(6, 4)
  const seqs = await readSeqs()
  const at = (index: number) => Number(seqs.at(index))
  const hashOf = async (seq: number) =>
    String((await api.sql(`select hash from audit_log where seq = ${seq}`))[0]?.['hash'])
  /** Removes entries in one transaction, after it has appended a report of it. */
  const removeReported = async (detail: object, removals: readonly string[], more: object = {}) => {
    const client = new pg.Client({ connectionString: api.controlUrl })
    await client.connect()
    try {
      const { rows } = await client.query('select hash from audit_log order by seq desc limit 1')
      const previous = (rows[0] as { hash: string }).hash
      const entry = {
        at: new Date(),
        actor: 'system',
        action: 'audit.remove',
        target: 'audit_log',
        detail,
        previous,
        ...more,
      }
      await client.query('begin')
      await client.query(
        `insert into audit_log (at, actor, action, target, detail, previous, hash) values ($1, $2, $3, $4, $5, $6, $7)`,
        [entry.at, entry.actor, entry.action, entry.target, detail, previous, auditHash(entry)],
      )
      for (const removal of removals) await client.query(removal)
    } finally {
      await client.end()
    }
  }
  const upTo = (seq: number) => `delete from audit_log where seq <= ${seq}`
  const report = async (seq: number, days = 365) => ({ entries: 1, last_seq: seq, last_hash: await hashOf(seq), days })
  const rejected = async (what: string, work: Promise<unknown>, message: RegExp) => t.rejects(work, { message }, what)
  const third = at(2)
  await t.resolves(removeReported(await report(third), [upTo(third)]), 'the allowed removal, rolled back')
  await rejected('no report', api.sql(upTo(third)), /append-only: the transaction has not/)
  await rejected('all entries', api.sql('delete from audit_log'), /append-only: the transaction has not/)
  await rejected('a report of a user', removeReported(await report(third), [upTo(third)], { actor: 'key' }), /has not/)
  await rejected('another action', removeReported(await report(third), [upTo(third)], { action: 'a' }), /has not/)
  await rejected('more than reported', removeReported(await report(third), [upTo(third + 1)]), /not the reported one/)
  await rejected(
    'another hash',
    removeReported({ ...(await report(third)), last_hash: await hashOf(at(1)) }, [upTo(third)]),
    /not the reported one/,
  )
  await rejected(
    'two removals with one report',
    removeReported(await report(third), [upTo(third), upTo(third + 1)]),
    /not the reported one/,
  )
  await rejected(
    'a gap',
    removeReported(await report(third), [`delete from audit_log where seq = ${third}`]),
    /only the oldest entries/,
  )
  await rejected('a recent entry', removeReported(await report(at(7)), [upTo(at(7))]), /not older than the retention/)
  await rejected('a short period', removeReported(await report(third, 29), [upTo(third)]), /at least 30 days/)
  await rejected('no period', removeReported({ ...(await report(third)), days: null }, [upTo(third)]), /30 days/)
  await api.sql('begin; commit')
  t.equal(await removeOld(365, 2), 2)
  await rejected('a report of an earlier transaction', api.sql(upTo(third)), /the transaction has not/)
  t.same(await verify(), { whole: true, entries: 9, broken_at: null })
})

t.test('The verification detects a forged beginning of the chain', async (t) => {
  await fillLog(6, 4)
  t.equal(await removeOld(365, 3), 3)
  const seqs = await readSeqs()
  const [first = 0] = seqs
  const report = seqs.at(-1) ?? 0
  await append(2, 0)
  const reportHash = async (detail: object) => {
    const row = await database.auditEntry.findUniqueOrThrow({ where: { seq: report } })
    return auditHash({ ...row, detail })
  }
  /** Changes entries as a superuser who disables the triggers, verifies the log, and restores all entries. */
  const forge = async (what: string, sql: string, brokenAt: number) => {
    await api.sql('alter table audit_log disable trigger all')
    await api.sql('create table audit_copy as table audit_log')
    await api.sql(sql)
    t.match(await verify(), { whole: false, broken_at: brokenAt }, what)
    await api.sql('delete from audit_log; insert into audit_log select * from audit_copy; drop table audit_copy')
    await api.sql('alter table audit_log enable trigger all')
  }
  const remove = (seq: number) => `delete from audit_log where seq = ${seq}`
  await forge('the first one removed', remove(first), first + 1)
  await forge('the first one changed', `update audit_log set actor = 'x' where seq = ${first}`, first)
  await forge('a gap', remove(first + 2), first + 3)
  await forge('the report removed', remove(report), first)
  await forge(
    'the report changed',
    `update audit_log set detail = detail || '{"entries": 0}' where seq = ${report}`,
    report,
  )
  await forge('a report without a hash', `update audit_log set detail = '{}' where seq = ${report}`, first)
  const second = String((await api.sql(`select previous from audit_log where seq = ${first + 1}`))[0]?.['previous'])
  const detail = { entries: 4, last_seq: first, last_hash: second, days: 365 }
  await forge(
    'the report changed, with its own hash, and one more entry removed',
    `${remove(first)};
     update audit_log set detail = '${JSON.stringify(detail)}', hash = '${await reportHash(detail)}' where seq = ${report}`,
    report + 1,
  )
  await forge(
    'an entry inserted before the first one',
    `insert into audit_log (seq, at, actor, action, target, detail, previous, hash)
     select ${first - 1}, at, actor, action, target, detail, '', repeat('0', 64) from audit_log where seq = ${first}`,
    first - 1,
  )
  t.same(await verify(), { whole: true, entries: 10, broken_at: null }, 'all entries are restored')
})

t.test('A removal that is killed before its deletion changes nothing, and the next one succeeds', async (t) => {
  await fillLog(6, 4)
  const before = await readSeqs()
  const holder = new pg.Client({ connectionString: api.controlUrl })
  await holder.connect()
  await holder.query(`begin; select from audit_log where seq = ${Number(before[3])} for update`)
  const waiting = `select pid from pg_stat_activity where wait_event_type = 'Lock' and query ilike 'delete from%audit_log%'`
  const killed = t.rejects(removeOld(365, 1_000))
  await until(async () => (await api.sql(waiting)).length === 1, 'the deletion waits')
  await api.sql(`select pg_terminate_backend(pid) from (${waiting}) as w`)
  await killed
  t.same(await readSeqs(), before)
  t.match(await verify(), { whole: true, entries: 10 })
  await holder.end()
  t.equal(await removeOld(365, 1_000), 6)
  t.same(await verify(), { whole: true, entries: 5, broken_at: null })
})

t.test('A removal during the verification is no damage', async (t) => {
  await fillLog(6, 4)
  let removals = 0
  const { auditEntry } = database
  const racing = {
    auditEntry: {
      findFirst: (...args: Parameters<typeof auditEntry.findFirst>) => auditEntry.findFirst(...args),
      async findMany(...args: Parameters<typeof auditEntry.findMany>) {
        if (removals++ === 0) await removeOld(365, 1_000)
        return auditEntry.findMany(...args)
      },
    },
  } as unknown as Database
  t.same(await createAuditLog(racing).verify(), { entries: 5, brokenAt: undefined })
})

t.test('The leader removes old entries after the days of its setting', async (t) => {
  await fillLog(6, 4)
  api.startController()
  await until(async () => (await readSeqs()).length === 5, 'six entries are removed and one reports it')
  t.match(await verify(), { whole: true, entries: 5 })
})

t.test('The next batch follows at once after a full one, and otherwise in a day', async (t) => {
  const counts = [1_000, 999]
  const lost = new AbortController()
  const slept: number[] = []
  const clock = {
    ...systemClock,
    async sleep(milliseconds: number) {
      slept.push(milliseconds)
      if (slept.length === 3) lost.abort()
    },
  }
  const calls: unknown[][] = []
  const warned: string[] = []
  const store = {
    remove: (...args: unknown[]) => {
      calls.push(args)
      const count = counts.shift()
      return count === undefined ? Promise.reject(new Error('gone')) : Promise.resolve(count)
    },
  }
  await removeOldEntries({
    store,
    days: 40,
    clock,
    log: { warn: (_: unknown, text?: string) => warned.push(String(text)) },
  })({
    epoch: 3n,
    lost: lost.signal,
  })
  t.same(slept, [1_000, dayMilliseconds, 5_000])
  t.same(calls[0], [3n, 40, 1_000])
  t.same(warned, ['Old entries of the audit log could not be removed. The removal is retried.'])
})
