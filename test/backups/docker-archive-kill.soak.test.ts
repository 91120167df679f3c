// Control plane, the tenant's Postgres and the object store are killed while a base backup is uploaded, while WAL is archived, and
// while a moment is restored, on a Docker Engine. Each restored tenant holds exactly its moment, and nothing is left behind.
import pg from 'pg'
import t from 'tap'
import { effort, seed } from '#test/support/effort.ts'
import { query } from '#test/support/postgres.ts'
import { until } from '#test/support/until.ts'
import { chanceOf } from '#test/simulation/chance.ts'
import { startBucketTarget } from './support/bucket-target.ts'
import { createOwner, ended, scratchObjects, startBackupPlatform, toOwner } from './support/tenants.ts'

const baseKills = effort({ small: 3, full: 9 })
const restoreKills = effort({ small: 3, full: 24 })
const steps = ['base backup', 'recovery', 'files', 'database', 'log', 'services', 'snapshot'] as const
const rowsPerMoment = 40
const moments = 2
/** A base backup that failed, because the bucket did not respond, is tried again after five minutes. */
const archiveMilliseconds = 480_000
const maxDelayMilliseconds = 1_000

t.test('kills during archive and restore to a moment', { timeout: 14_400_000 }, async (t) => {
  t.comment(`seed ${seed}`)
  const chance = chanceOf(seed)
  const bucket = await startBucketTarget(t)
  // The bucket is the only target.
  const platform = await startBackupPlatform(t, {
    environment: { TENANTRY_BACKUPS: '', TENANTRY_BACKUP_TARGETS_FILE: bucket.file },
  })
  let plane = platform.controlPlane
  const ada = await createOwner(platform, 'ada')
  // Values that cannot be compressed fill segments soon.
  await query(ada.url, 'create table writes (number int primary key, filler bytea)')
  const containers = async (isWanted: (name: string, stack: string) => boolean) =>
    (await platform.host.observe({ installation: platform.installation }, AbortSignal.timeout(10_000))).containers
      .filter(({ name, labels, state }) => state === 'running' && isWanted(name, labels.stack))
      .map(({ name }) => name)
  const victims = {
    'control plane': async () => {
      await plane.kill()
      plane = await platform.startControlPlane()
    },
    bucket: () => bucket.server.kill().then(() => bucket.server.start()),
    postgres: async () => {
      for (const name of await containers((name, stack) => stack === ada.id && name.includes('postgres')))
        await platform.kill(name)
    },
    'scratch postgres': async () => {
      for (const name of await containers((name, stack) => stack.startsWith('s_') && name.includes('postgres')))
        await platform.kill(name)
    },
  }
  const names = Object.keys(victims) as (keyof typeof victims)[]
  const settled = () => platform.until(ada.id, ({ status }) => status === 'ready')
  const recovery = async () => (await platform.call('GET', `/v1/tenants/${ada.id}/recovery`)).body
  const archived = (holds: (body: Record<string, unknown>) => boolean, what: string) =>
    until(() => recovery().then(holds, () => false), what, archiveMilliseconds)
  const archive = async (days: number | null) => {
    await settled()
    t.equal((await platform.call('PATCH', `/v1/tenants/${ada.id}`, { archive_days: days })).status, 200)
    await settled()
  }

  let written = 0
  const write = async (count: number) => {
    const wanted = written + count
    while (written < wanted) {
      const client = new pg.Client({ connectionString: ada.url })
      client.on('error', () => undefined)
      try {
        await client.connect()
        while (written < wanted) {
          const filler = `(select string_agg(sha512((random()::text || n)::bytea), '') from generate_series(1, 8000) n)`
          await client.query(`insert into writes values ($1, ${filler}) on conflict do nothing`, [written + 1])
          written++
        }
      } catch {
        await new Promise((resolve) => setTimeout(resolve, 100))
      } finally {
        await client.end().catch(() => undefined)
      }
    }
  }

  for (let round = 0; round < baseKills; round++) {
    const victim = names[round % 3] ?? 'bucket'
    const before = (await recovery())['earliest']
    if (before !== null) {
      await archive(null)
      await until(async () => (await bucket.archived()).length === 0, 'the archive is removed', archiveMilliseconds)
    }
    await archive(7)
    await until(
      async () => (await bucket.archived()).some((name) => name.startsWith('base-')),
      'a base backup begins',
      archiveMilliseconds,
    )
    await new Promise((resolve) => setTimeout(resolve, chance.below(maxDelayMilliseconds)))
    await victims[victim]()
    await write(rowsPerMoment)
    await archived(({ earliest, error }) => typeof earliest === 'string' && error === null, `${victim}: the archive`)
    await until(
      async () => {
        const { begun } = await bucket.server.keys()
        const left = (await bucket.archived()).filter((name) => name.endsWith('.new'))
        return begun.length === 0 && left.length === 0
      },
      `${victim}: no unfinished base backup is left`,
      archiveMilliseconds,
    )
  }

  const marks: { to: string; written: number }[] = []
  for (let number = 0; number < moments; number++) {
    await write(rowsPerMoment)
    await new Promise((resolve) => setTimeout(resolve, 5))
    marks.push({ to: new Date().toISOString(), written })
    await new Promise((resolve) => setTimeout(resolve, 5))
    // While its segments are uploaded.
    await write(rowsPerMoment)
    await victims[chance.pick(['control plane', 'bucket', 'postgres'] as const)]()
  }
  await write(1)
  const last = marks.at(-1)?.to ?? ''
  await archived(({ latest }) => typeof latest === 'string' && latest > last, 'the moments')
  await archived(({ error }) => error === null, 'the archive continues')
  const { ranges } = await recovery()
  t.equal((ranges as unknown[]).length, 1, 'no kill has ended the archive')

  for (let round = 0; round < restoreKills; round++) {
    const victim = names[round % names.length] ?? 'bucket'
    const step = steps[round % steps.length] ?? 'files'
    const what = `${round}: ${victim} at ${step}`
    const mark = chance.pick(marks)
    await settled()
    const response = await platform.call('POST', `/v1/tenants/${ada.id}/restore`, {
      to: mark.to,
      into: { name: `restored-${round}` },
    })
    t.equal(response.status, 202, JSON.stringify(response.body))
    const { id } = response.body['operation'] as { id: string }
    await until(async () => {
      const [row] = await platform.sql('select step, finished_at from operations where id = $1', [id])
      return row?.['step'] === step || row?.['finished_at'] !== null
    }, what)
    await new Promise((resolve) => setTimeout(resolve, chance.below(maxDelayMilliseconds)))
    await victims[victim]()
    t.match(await ended(platform, response, 400), { state: 'succeeded', error: null }, what)
    const restored = toOwner(response.body)
    await platform.until(restored.id, ({ status }) => status === 'ready')
    t.same(
      await query(restored.url, 'select count(*)::int as rows, min(number) as first, max(number) as last from writes'),
      [{ rows: mark.written, first: 1, last: mark.written }],
      what,
    )
    await platform.call('DELETE', `/v1/tenants/${restored.id}?purge=true`)
    await until(async () => (await scratchObjects(platform)).length === 0, `${what}: no scratch object is left`)
  }

  t.same(await query(ada.url, 'select count(*)::int as rows, max(number) as last from writes'), [
    { rows: written, last: written },
  ])
  const { backups } = (await platform.call('GET', `/v1/tenants/${ada.id}/backups`)).body as {
    backups: { id: string; state: string }[]
  }
  for (const { id, state } of backups) {
    t.equal(state, 'complete', id)
    t.equal((await platform.call('DELETE', `/v1/backups/${id}`)).status, 200, id)
  }
  await archive(null)
  await until(
    async () => {
      const { whole, begun } = await bucket.server.keys()
      return begun.length === 0 && whole.every((key) => key.startsWith('control-database-'))
    },
    'nothing is left in the bucket',
    archiveMilliseconds,
  )
  t.comment(`${baseKills + moments + restoreKills} kills, ${written} rows`)
})
