// Proofs of backups are requested on a schedule, and their results are visible in the API, as condition, event and metric.
import { randomUUID } from 'node:crypto'
import t from 'tap'
import type { Job } from '#control-plane/backups/backup.ts'
import { requestProofs } from '#control-plane/backups/jobs-proofs.ts'
import { createBackupLedger } from '#control-plane/backups/store-ledger.ts'
import { createProofLedger, type BackupAges } from '#control-plane/backups/store-proofs.ts'
import { systemClock } from '#control-plane/platform/clock.ts'
import { openDatabase } from '#control-plane/platform/database.ts'
import { startApi } from '#test/support/control-plane/api.ts'

const api = await startApi(t)
const database = openDatabase(api.controlUrl)
t.teardown(() => database.$disconnect())
const epoch = BigInt(String((await api.sql('select epoch from installation'))[0]?.['epoch']))
const day = 86_400_000
let time = Date.now()
const now = () => new Date(time)
const proofs = createProofLedger(database, now)
const backups = createBackupLedger(database, api.seal, now)
let ages: BackupAges | undefined

const request = (periodDays = 7) =>
  requestProofs({ ledger: proofs, periodDays, clock: { ...systemClock, now }, measure: (seen) => (ages = seen) }, epoch)
const openVerifications = () =>
  api.sql(
    "select id, tenant_id, backup_id from operations where kind = 'verify' and state = 'pending' order by created_at",
  )

/** Inserts a complete backup. Nothing reads its content. */
async function insertBackup(tenantId: string, region = 'local'): Promise<string> {
  const id = randomUUID()
  const key = api.seal.seal(Buffer.alloc(32).toString('base64'), `backup:${id}`)
  await api.sql(
    `insert into backups (id, tenant_id, region_id, state, trigger, key, created_at)
      values ($1, $2, $3, 'complete', 'schedule', $4, $5)`,
    [id, tenantId, region, key, now()],
  )
  return id
}

/** Ends the only open job as the job runner does. */
async function end(error: string | null): Promise<Job> {
  const [job] = await backups.openJobs()
  if (job === undefined) throw new Error('no job is open')
  await backups.begin(job, epoch)
  await backups.recordVerified(job, error, epoch)
  if (error === null) await backups.finish(job, epoch)
  else await backups.fail(job, error, epoch)
  return job
}

const tenant = await api.create()
const id = tenant.tenant_id
const conditions = async () =>
  (await api.tenant(id)).conditions
    .filter(({ type }) => type === 'Backup')
    .map(({ status, reason, message }) => ({ status, reason, message }))
const lastProven = async () =>
  ((await api.call('GET', `/v1/tenants/${id}/backups`)).body as { last_proven: unknown }).last_proven
const events = () =>
  api.sql("select type, data from operator_events where tenant_id = $1 and type like 'backup.%' order by at", [id])

t.test('The newest backup is verified once in the period, and not at all when proofs are off', async (t) => {
  await api.sql("update tenants set backup_schedule = '0 3 * * *' where id = $1", [id])
  await request()
  t.match(ages, { complete: { missing: 1 }, proven: { missing: 1 } })
  await insertBackup(id)
  time += 1000
  const newest = await insertBackup(id)
  await request()
  t.same(await openVerifications(), [], 'the schedule begins with the first backup')
  time += 8 * day
  await request(0)
  t.same(await openVerifications(), [], 'proofs are off')
  await request()
  await request()
  t.match(await openVerifications(), [{ tenant_id: id, backup_id: newest }])
  t.equal(await lastProven(), null)
  await end(null)
  t.same(await lastProven(), { backup_id: newest, at: now().toISOString() })
  await request()
  t.same(await openVerifications(), [])
  time += 60_000
  await request()
  t.match(ages, { complete: { missing: 0 }, proven: { seconds: 60, missing: 0 } })
  t.ok((ages?.complete.seconds ?? 0) > 8 * 86_400)
})

t.test(
  'A failed proof sets a condition and sends one event, and the next good proof removes the condition',
  async (t) => {
    time += 8 * day
    await request()
    const { backup, operationId } = await end('The table notes differs.')
    const message = `The verification of the backup ${backup.id} failed: The table notes differs.`
    t.same(await conditions(), [{ status: 'False', reason: 'ProofFailed', message }])
    await api.call('PATCH', `/v1/tenants/${id}`, { body: { plan: 'Pro' }, headers: { prefer: 'wait=30' } })
    t.equal((await conditions()).length, 1, 'an observation of the tenant does not remove it')
    const about = { tenant_id: id, name: tenant.name, backup_id: backup.id, operation_id: operationId }
    t.match(await events(), [
      { type: 'backup.proof_failed', data: { ...about, message: 'The table notes differs.', region: 'local' } },
    ])
    t.equal((await events()).length, 1)
    t.match(await lastProven(), { backup_id: backup.id }, 'the earlier proof stays')
    time += 8 * day
    await request()
    await end(null)
    t.same(await conditions(), [])
  },
)

t.test('Backups and restores that fail send an event; a deleted tenant sends none', async (t) => {
  const backup = await insertBackup(id)
  const open = (kind: string) =>
    api.sql(
      "insert into operations (id, tenant_id, kind, state, generation, backup_id) values ($1, $2, $3, 'pending', 0, $4)",
      [randomUUID(), id, kind, backup],
    )
  const fail = async () => {
    const [job] = await backups.openJobs()
    if (job === undefined) throw new Error('no job is open')
    await backups.fail(job, 'The target is full.', epoch)
    await backups.fail(job, 'The target is full.', epoch)
  }
  await open('backup')
  await fail()
  time += 1
  await open('restore')
  await fail()
  const sent = (await events()).slice(1)
  t.match(sent, [
    { type: 'backup.failed', data: { backup_id: backup, message: 'The target is full.' } },
    { type: 'backup.restore_failed', data: { backup_id: backup, message: 'The target is full.' } },
  ])
  await api.call('DELETE', `/v1/tenants/${id}`, { headers: { prefer: 'wait=30' } })
  await open('backup')
  await fail()
  t.equal((await events()).slice(1).length, 2)
  time += 8 * day
  await request()
  t.same(await openVerifications(), [], 'the backups of a tenant in its grace time wait')
})
