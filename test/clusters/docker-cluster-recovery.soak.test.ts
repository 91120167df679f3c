// A cluster is restored to moments before and after failovers, while a client writes numbers through all of them: each restored
// tenant has what was acknowledged by its moment, and nothing that was sent after it.
import t, { type Test } from 'tap'
import {
  createOwner,
  ended,
  put,
  json,
  scratchObjects,
  startBackupPlatform,
  toOwner,
  type Owner,
} from '#test/backups/support/tenants.ts'
import { chanceOf } from '#test/simulation/chance.ts'
import { clusterImages } from '#test/support/docker-platform.ts'
import { effort, seed } from '#test/support/effort.ts'
import { query } from '#test/support/postgres.ts'
import { until } from '#test/support/until.ts'
import { containerOf, crashPostgres, primaryOf } from './platform-parts.ts'
import { startWriter, type SentRow } from './writer.ts'

const restores = effort({ small: 1, full: 10 })
const failovers = effort({ small: 2, full: 6 })
const writes = 100

/** Checks that a restored table has exactly the rows of a moment. A row that was in progress at the moment may be missing. */
async function holdsMoment(t: Test, { url }: Owner, to: number, sent: readonly SentRow[]): Promise<void> {
  const rows = await query(url, 'select number, count(*)::int as count from numbers group by number')
  const found = new Map(rows.map(({ number, count }) => [Number(number), Number(count)]))
  const at = new Date(to).toISOString()
  const due = sent.filter(({ acknowledgedAt }) => acknowledgedAt !== undefined && acknowledgedAt < to)
  t.same(
    due.filter(({ number }) => !found.has(number)),
    [],
    `none of ${due.length} rows acknowledged by ${at} is missing`,
  )
  const later = new Set(sent.filter(({ sentAt }) => sentAt > to).map(({ number }) => number))
  t.same(
    [...found.keys()].filter((number) => later.has(number)),
    [],
    `no row sent after ${at}`,
  )
  t.same(
    [...found].filter(([, count]) => count > 1),
    [],
    'no row twice',
  )
}

t.test('A cluster is restored to moments across failovers', { timeout: 7_200_000 }, async (t) => {
  t.comment(`seed ${seed}`)
  const chance = chanceOf(seed)
  const platform = await startBackupPlatform(t, { docker: { clusters: clusterImages } })
  const ada = await createOwner(platform, 'ada', 'cluster-per-tenant')
  const signal = AbortSignal.timeout(7_190_000)
  const recovery = async () => (await platform.call('GET', `/v1/tenants/${ada.id}/recovery`)).body
  const archived = async (holds: (body: Record<string, unknown>) => boolean) => {
    await until(async () => holds(await recovery()), 'the archive', 240_000)
    return recovery()
  }
  await json(platform, 'ada', ada.key, 'POST', '/storage/v1/bucket', { name: 'papers', policy: 'private' })
  await put(platform, 'ada', ada.key, 'papers/early.txt', 'early')
  t.match(await platform.call('PATCH', `/v1/tenants/${ada.id}`, { archive_days: 7 }), { status: 200 })
  const { earliest } = await archived((body) => typeof body['earliest'] === 'string')

  const writer = startWriter(ada.url)
  t.teardown(() => writer.stop())
  await writer.acknowledged(writes)
  const faults = [
    async () => platform.kill(await containerOf(platform, ada, await primaryOf(platform, ada), signal)),
    async () => {
      const switched = await platform.call('POST', `/v1/tenants/${ada.id}/switchover`, undefined, { prefer: 'wait=60' })
      t.match(switched.body, { operation: { state: 'succeeded' } })
    },
    async () =>
      platform.host.exec(await containerOf(platform, ada, await primaryOf(platform, ada), signal), crashPostgres, {
        signal,
      }),
  ]
  for (let failover = 0; failover < failovers; failover++) {
    await faults[failover % faults.length]?.()
    await writer.acknowledged(writer.count() + writes)
    await put(platform, 'ada', ada.key, `papers/after-${failover}.txt`, `after ${failover}`)
  }
  const end = Date.now()
  // The writer continues while the moments are restored.
  const covered = await archived(({ latest }) => Date.parse(String(latest)) > end)
  t.equal((covered['ranges'] as unknown[]).length, 1, 'the archive has no gap')
  t.equal(covered['error'], null)

  const begin = Math.max(Date.parse(String(earliest)), writer.sent()[0]?.sentAt ?? 0) + 1_000
  const moments = Array.from({ length: restores }, (_, index) => {
    const part = (end - begin) / restores
    return Math.round(begin + part * index + chance.below(Math.floor(part)))
  })
  for (const [index, moment] of moments.entries()) {
    const into = { name: `at-${index}`, isolation: 'database-per-tenant' }
    const body = { to: new Date(moment).toISOString(), into }
    const response = await platform.call('POST', `/v1/tenants/${ada.id}/restore`, body)
    t.match(await ended(platform, response, 600), { state: 'succeeded', error: null })
    const restored = toOwner(response.body)
    await platform.until(restored.id, ({ status }) => status === 'ready')
    await holdsMoment(t, restored, moment, writer.sent())
    const early = await platform.tenantCall(restored.name, 'GET', '/storage/v1/object/papers/early.txt', {
      key: restored.key,
    })
    t.equal(await early.text(), 'early')
    t.equal((await platform.call('DELETE', `/v1/tenants/${restored.id}`)).status, 202)
  }

  await t.test('the cluster itself is restored to a moment', async (t) => {
    await writer.stop()
    const moment = begin + chance.below(end - begin)
    const to = new Date(moment).toISOString()
    const response = await platform.call('POST', `/v1/tenants/${ada.id}/restore`, { to, into: 'same' })
    t.match(await ended(platform, response, 600), { state: 'succeeded', error: null })
    await holdsMoment(t, ada, moment, writer.sent())
    t.same(await scratchObjects(platform), [])
  })
})
