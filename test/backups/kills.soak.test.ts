// Control plane, control database, Postgres of the homes, object store and runtime are killed at each step of backups, proofs
// and restores. No tenant is harmed, each complete backup is whole, and nothing is left behind.
import t from 'tap'
import { effort, seed } from '#test/support/effort.ts'
import { query } from '#test/support/postgres.ts'
import { until } from '#test/support/until.ts'
import { chanceOf } from '#test/simulation/chance.ts'
import { startKilledPlatform, startWriter, toOwner, type Owner, type Victim } from './support/killed-platform.ts'

const kills = effort({ small: 5, full: 100 })
const victims: readonly Victim[] = ['control plane', 'control database', 'homes', 'bucket', 'runtime']
/** The steps of each kind of work. Their number has no common factor with that of the victims, so each pair occurs. */
const steps = [
  ['backup', 'files'],
  ['proof', 'database'],
  ['restore', 'files'],
  ['backup', 'database'],
  ['copy', 'files'],
  ['backup', 'snapshot'],
  ['proof', 'check'],
  ['restore', 'database'],
  ['backup', 'commit'],
  ['restore', 'replace'],
  ['copy', 'database'],
  ['proof', 'files'],
  ['restore', 'renew'],
] as const
const maxDelayMilliseconds = 300
/** The targets are compared with the control database once a minute. */
const surveyedMilliseconds = 240_000

t.test('kills during backups, proofs and restores', { timeout: 14_400_000 }, async (t) => {
  t.comment(`seed ${seed}`)
  const chance = chanceOf(seed)
  const killed = await startKilledPlatform(t)
  const { call, controlSql, seen, stored, scratch } = killed
  const [steady, busy] = [await killed.create('steady'), await killed.create('busy')]
  const before = { steady: await seen(steady), busy: await seen(busy) }

  const isReady = async ({ id }: Owner) => (await call('GET', `/v1/tenants/${id}`)).body['status'] === 'ready'
  const request = async (path: string, body?: unknown) => {
    const response = await call('POST', path, body)
    if (response.status !== 202) throw new Error(`${path}: ${response.status} ${JSON.stringify(response.body)}`)
    const { id: operationId } = response.body['operation'] as { id: string }
    return { id: String(response.body['id']), body: response.body, operationId }
  }
  const ended = async (operationId: string) => {
    let operation: Record<string, unknown> = {}
    await until(async () => {
      operation = (await call('GET', `/v1/operations/${operationId}`)).body
      return operation['finished'] !== null
    }, `the end of the operation ${operationId}`)
    return operation
  }
  /** Waits until an operation reaches a step, or ends because the step was too quick to observe. */
  const untilStep = (operationId: string, step: string) =>
    until(async () => {
      const [row] = await controlSql('select step, finished_at from operations where id = $1', [operationId])
      return row?.['step'] === step || row?.['finished_at'] !== null
    })
  const succeeds = async (path: string, body?: unknown) => {
    const requested = await request(path, body)
    t.match(await ended(requested.operationId), { state: 'succeeded', error: null }, path)
    return requested
  }
  /** Compares a tenant with the one that a backup was taken of, and removes it. */
  const compareCopy = async (body: Record<string, unknown>, expected: unknown, rows?: { min: number; max: number }) => {
    const copy = toOwner(body)
    t.same(await seen(copy), expected, copy.name)
    if (rows !== undefined) {
      const [found] = await query(
        copy.url,
        'select count(*)::int as count, coalesce(max(number), 0) as last from writes',
      )
      const count = Number(found?.['count'])
      t.equal(found?.['last'], count, 'the rows of one moment')
      t.ok(count >= rows.min && count <= rows.max, `${count} rows of ${rows.min} to ${rows.max}`)
    }
    t.equal((await call('DELETE', `/v1/tenants/${copy.id}?purge=true`)).status, 202)
  }

  const { id: base } = await succeeds(`/v1/tenants/${steady.id}/backups`)
  await until(async () => {
    const { copies } = (await call('GET', `/v1/backups/${base}`)).body as { copies: { state: string }[] }
    return copies.every(({ state }) => state === 'complete')
  }, 'the copy of the backup')

  const writer = startWriter(busy)
  const outcomes = new Map<string, number>()
  for (let round = 0; round < kills; round++) {
    const victim = victims[round % victims.length] ?? 'control plane'
    const [work, step] = steps[round % steps.length] ?? steps[0]
    const what = `${round}: ${victim} at ${work}/${step}`
    for (const owner of [steady, busy]) await until(() => isReady(owner), `${owner.name} is ready`)
    const min = writer.state.acknowledged
    const copyName = `copy-${round}`
    const requested = await {
      backup: () => request(`/v1/tenants/${busy.id}/backups`),
      proof: () => request(`/v1/backups/${base}/verify`),
      restore: () => request(`/v1/backups/${base}/restore`, { into: 'same' }),
      copy: () => request(`/v1/backups/${base}/restore`, { into: { name: copyName } }),
    }[work]()
    await untilStep(requested.operationId, step)
    await new Promise((resolve) => setTimeout(resolve, chance.below(maxDelayMilliseconds)))
    await killed.kill(victim)
    const operation = await ended(requested.operationId)
    const outcome = `${work} ${String(operation['state'])}, attempts ${String(operation['attempts'])}`
    outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1)

    if (work === 'backup') {
      const { body } = await call('GET', `/v1/backups/${requested.id}`)
      const isComplete = body['state'] === 'complete'
      t.equal(operation['state'], isComplete ? 'succeeded' : 'failed', what)
      if (isComplete) {
        const rows = { min, max: writer.state.acknowledged + 1 }
        await succeeds(`/v1/backups/${requested.id}/verify`)
        const copy = await succeeds(`/v1/backups/${requested.id}/restore`, { into: { name: copyName } })
        await compareCopy(copy.body, before.busy, rows)
        t.equal((await call('DELETE', `/v1/backups/${requested.id}`)).status, 200, `${what}: removed`)
      } else t.equal(body['state'], 'failed', what)
    } else {
      t.match(operation, { state: 'succeeded', error: null }, what)
      if (work === 'proof') t.match((await call('GET', `/v1/backups/${base}`)).body, { verify_error: null }, what)
      if (work === 'copy') await compareCopy(requested.body, before.steady)
    }
    t.same({ steady: await seen(steady), busy: await seen(busy) }, before, `${what}: no tenant is harmed`)
    await until(async () => (await scratch()).length === 0, `${what}: nothing is left in Postgres`)
  }

  const acknowledged = await writer.stop()
  const [written] = await query(busy.url, 'select count(*)::int as count, max(number) as last from writes')
  const count = Number(written?.['count'])
  t.equal(written?.['last'], count, 'no row is lost')
  t.ok(count === acknowledged || count === acknowledged + 1, `${count} rows, ${acknowledged} acknowledged`)
  await succeeds(`/v1/backups/${base}/verify`)
  for (const state of ['unknown', 'missing'])
    t.same((await call('GET', `/v1/backups?state=${state}`)).body['backups'], [], state)
  let left: string[] = []
  await until(
    async () => {
      const paths = await stored()
      const committed = new Set(paths.flatMap((path) => (path.endsWith('/.committed') ? [path.slice(0, -10)] : [])))
      const isWhole = (path: string) =>
        path.startsWith('/')
          ? !/\.(making|removing)\//.test(path)
          : committed.has(path.slice(0, path.lastIndexOf('/') + 1))
      left = paths.filter((path) => !isWhole(path) || (!path.includes(base) && !path.includes('control-database-')))
      left.push(...paths.filter((path) => /\/\.(making|removing|quarantined)$|\(unfinished\)$/.test(path)))
      return left.length === 0
    },
    'nothing is left in the targets',
    surveyedMilliseconds,
  ).catch(() => t.same(left, [], 'nothing is left in the targets'))
  t.comment(`${kills} kills, ${count} rows written, ${JSON.stringify(Object.fromEntries(outcomes))}`)
})
