// A tenant with a database of its own is restored to moments between numbered writes, and holds exactly what was
// committed by then, rows and files. Its archive is in a directory and in a bucket of a real S3 server; the last moment is
// restored from the bucket alone.
import { readdir, rename } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import pg from 'pg'
import t from 'tap'
import { effort, seed } from '#test/support/effort.ts'
import { query } from '#test/support/postgres.ts'
import { until } from '#test/support/until.ts'
import { startBucketTarget } from './support/bucket-target.ts'
import { createOwner, ended, json, put, scratchObjects, startBackupPlatform, toOwner } from './support/tenants.ts'

const restores = effort({ small: 2, full: 20 })
const writesPerMoment = effort({ small: 30, full: 100 })
/** Full runs assert the lag of the archive, so nothing else may run on the machine meanwhile. */
const maxLagSeconds = effort({ small: 300, full: 60 })
const sampleMs = 1_000

/** A moment after a number of writes and before the next one. */
interface Moment {
  to: string
  written: number
}

/** Reads the lag of the archive all the time. */
function sampleLag(recovery: () => Promise<Record<string, unknown>>) {
  const samples: number[] = []
  const stop = new AbortController()
  const sampling = (async () => {
    while (!stop.signal.aborted) {
      // The control plane is killed once.
      const lag = await recovery().then(
        ({ lag_seconds: seconds }) => seconds,
        () => null,
      )
      if (typeof lag === 'number') samples.push(lag)
      await new Promise((resolve) => setTimeout(resolve, sampleMs))
    }
  })()
  return async () => {
    stop.abort()
    await sampling
    samples.sort((a, b) => a - b)
    const at = (share: number) => samples[Math.min(samples.length - 1, Math.floor(samples.length * share))] ?? Infinity
    return { samples: samples.length, p50: at(0.5), p99: at(0.99), max: at(1) }
  }
}

t.test('a tenant is restored to moments between writes', async (t) => {
  t.comment(`seed ${seed}`)
  const bucket = await startBucketTarget(t)
  const platform = await startBackupPlatform(t, { environment: { TENANTRY_BACKUP_TARGETS_FILE: bucket.file } })
  const ada = await createOwner(platform, 'ada')
  await query(ada.url, 'create table writes (number int primary key, filler text)')
  await json(platform, 'ada', ada.key, 'POST', '/storage/v1/bucket', { name: 'papers', policy: 'private' })
  const recovery = async () => (await platform.call('GET', `/v1/tenants/${ada.id}/recovery`)).body
  const archived = async (holds: (body: Record<string, unknown>) => boolean) => {
    const holdsNow = () => recovery().then(holds, () => false)
    await until(holdsNow, 'the archive', 240_000)
    return recovery()
  }
  const fileOf = async (name: string, key: string, path: string) => {
    const response = await platform.tenantCall(name, 'GET', `/storage/v1/object/papers/${path}`, { key })
    const text = await response.text()
    return response.ok ? text : response.status
  }

  t.match(
    await platform.call('POST', `/v1/tenants/${ada.id}/restore`, { to: new Date().toISOString(), into: 'same' }),
    {
      status: 422,
      body: { code: 'OUTSIDE_ARCHIVE', ranges: [] },
    },
  )
  const changed = await platform.call('PATCH', `/v1/tenants/${ada.id}`, { archive_days: 7 })
  t.equal(changed.status, 200, JSON.stringify(changed.body))
  await archived(({ earliest }) => typeof earliest === 'string')

  const endSamples = sampleLag(recovery)
  const moments: Moment[] = []
  let written = 0
  const client = new pg.Client({ connectionString: ada.url })
  client.on('error', () => undefined)
  await client.connect()
  for (let moment = 0; moment < restores; moment++) {
    const stopAt = written + writesPerMoment
    while (written < stopAt) {
      const number = written + 1
      await client.query('insert into writes select $1::int, repeat(md5($1::text), 200)', [number])
      if (number % 10 === 0) await put(platform, 'ada', ada.key, `papers/at-${number}`, `file ${number}`)
      if (number % 20 === 0) {
        const gone = `/storage/v1/object/papers/at-${number - 10}`
        t.equal((await platform.tenantCall('ada', 'DELETE', gone, { key: ada.key })).status, 200)
      }
      written = number
    }
    // The clocks are those of one machine. The moment is after the last write and before the next one.
    await new Promise((resolve) => setTimeout(resolve, 5))
    moments.push({ to: new Date().toISOString(), written })
    await new Promise((resolve) => setTimeout(resolve, 5))
    if (moment > 0) continue
    await platform.controlPlane.kill()
    await platform.startControlPlane()
  }
  await client.query('insert into writes values (0)')
  await client.end()
  const last = moments.at(-1)?.to ?? ''
  t.match(await platform.call('POST', `/v1/tenants/${ada.id}/restore`, { to: last, into: 'same' }), { status: 422 })
  t.match(await archived(({ latest }) => typeof latest === 'string' && latest > last), { error: null, archive_days: 7 })

  /** Compares a restored tenant with what was written by the moment. */
  const compare = async (name: string, key: string, url: string, { to, written }: Moment) => {
    t.same(
      await query(url, 'select count(*)::int as rows, min(number) as first, max(number) as last from writes'),
      [{ rows: written, first: 1, last: written }],
      `rows at ${to}`,
    )
    for (let number = 10; number <= written; number += 10) {
      const isDeleted = number % 20 === 10 && number + 10 <= written
      const content = await fileOf(name, key, `at-${number}`)
      if (isDeleted) t.not(content, `file ${number}`, `the deleted file ${number} at ${to}`)
      else t.equal(content, `file ${number}`, `the file ${number} at ${to}`)
    }
  }

  for (const [index, moment] of moments.slice(0, -1).entries()) {
    const response = await platform.call('POST', `/v1/tenants/${ada.id}/restore`, {
      to: moment.to,
      into: { name: `restored-${index}` },
    })
    t.match(await ended(platform, response, 300), { state: 'succeeded', error: null })
    const restored = toOwner(response.body)
    await platform.until(restored.id, ({ status }) => status === 'ready')
    await compare(restored.name, restored.key, restored.url, moment)
    t.equal((await platform.call('DELETE', `/v1/tenants/${restored.id}`)).status, 202)
  }
  const lag = await endSamples()
  t.comment(`lag of the archive: ${JSON.stringify(lag)}; moments ${restores}, writes ${written}`)
  t.ok(lag.p99 <= maxLagSeconds, `the 99th percentile of the lag is at most ${maxLagSeconds} s`)
  const [moment] = moments.slice(-1)
  if (moment === undefined) throw new Error('no moment')
  const archives = join(platform.directory, 'archives')
  const inDirectory = async () => (await readdir(archives, { recursive: true })).filter((name) => name.includes('/'))
  await until(async () => {
    const copied = new Set(await bucket.archived())
    return (await inDirectory()).every((path) => copied.has(path.split('/')[1] ?? ''))
  }, 'the copy of the archive in the bucket')
  const target = dirname(platform.directory)
  await rename(target, `${target}-away`)
  const response = await platform.call('POST', `/v1/tenants/${ada.id}/restore`, { to: moment.to, into: 'same' })
  t.match(response, { status: 202, body: { recovered_to: moment.to } })
  t.match(await ended(platform, response, 300), { state: 'succeeded', error: null })
  await compare('ada', ada.key, ada.url, moment)
  await rename(`${target}-away`, target)
  t.match(await recovery(), { last_proven: { to: moment.to }, error: null })
  t.same(await scratchObjects(platform), [])

  t.equal((await platform.call('PATCH', `/v1/tenants/${ada.id}`, { archive_days: null })).status, 200)
  await until(async () => (await readdir(archives)).length === 0, 'no files')
  await until(async () => (await bucket.archived()).length === 0, 'no objects')
  t.match(await recovery(), { archive_days: null, earliest: null, ranges: [], bytes: 0 })
})
