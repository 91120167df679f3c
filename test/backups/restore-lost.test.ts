// The control plane restores ready and failed tenants in place, and rejects all others.
import { randomBytes, randomUUID } from 'node:crypto'
import t from 'tap'
import { createBackupLedger } from '#control-plane/backups/store-ledger.ts'
import { createBackupStore } from '#control-plane/backups/store.ts'
import { createRecordWrite, type RecordedWrite } from '#control-plane/platform/recorded-write.ts'
import { startPlane } from '#test/support/control-plane/plane.ts'

const plane = await startPlane(t)
const store = createBackupStore({ database: plane.database, seal: plane.seal, now: plane.clock.now })
const record = createRecordWrite(plane.database, plane.clock.now)
const asOperator = <T>(work: (write: RecordedWrite) => Promise<T>) => record({ keyId: randomUUID() }, work)
const ledger = createBackupLedger(plane.database, plane.seal, plane.clock.now)

const backupOf = async (tenantId: string) => {
  const id = randomUUID()
  const key = Buffer.from(plane.seal.seal(randomBytes(32).toString('base64'), `backup:${id}`))
  await plane.sql(
    "insert into backups (id, tenant_id, region_id, state, trigger, key) values ($1, $2, $3, 'complete', 'request', $4)",
    [id, tenantId, plane.region().id, key],
  )
  return id
}
const restore = async (tenantId: string) => {
  const id = await backupOf(tenantId)
  return asOperator((write) => store.requestRestore(id, write))
}

t.test('a ready or failed tenant can be restored in place, once at a time', async (t) => {
  for (const columns of [
    {},
    {
      status: 'failed',
      reason: 'The volume "data" and its data are gone. No service is started on an empty volume.',
    },
  ]) {
    const id = await plane.addTenant(columns)
    t.match(await restore(id), { operation: { kind: 'restore', state: 'pending', tenantId: id } })
    await t.rejects(restore(id), { code: 'OPERATION_IN_PROGRESS' })
  }
})

t.test('a backup whose operation was superseded before it began is failed, and can be removed', async (t) => {
  const tenant = await plane.addTenant({})
  const backup = async (operation: string | undefined) => {
    const id = await backupOf(tenant)
    await plane.sql("update backups set state = 'running' where id = $1", [id])
    const operationId = randomUUID()
    if (operation !== undefined)
      await plane.sql(
        `insert into operations (id, tenant_id, kind, generation, state, step, backup_id)
         values ($1, $2, 'restore', 0, $3, 'pending', $4)`,
        [operationId, tenant, operation, id],
      )
    return { id, operationId }
  }
  const [open, carriedOut, superseded] = [
    await backup('running'),
    await backup('superseded'),
    await backup('superseded'),
  ]
  const [installed] = await plane.sql('select epoch from installation')
  await ledger.failAbandoned(new Set([carriedOut.operationId]), BigInt(String(installed?.['epoch'])))
  const states = await plane.sql('select id, state, error from backups where tenant_id = $1', [tenant])
  const stateOf = ({ id }: { id: string }) => states.find((row) => row['id'] === id)
  t.match(stateOf(open), { state: 'running', error: null })
  t.match(stateOf(carriedOut), { state: 'running', error: null }, 'its job records its end')
  t.match(stateOf(superseded), { state: 'failed', error: /superseded/ })
  await asOperator((write) => store.remove(superseded.id, write))
})

t.test('a restore of a pending, stopped or deleted tenant is rejected', async (t) => {
  for (const [columns, code] of [
    [{ status: 'pending' }, 'NOT_ACTIVE'],
    [{ desired: 'suspended', status: 'failed' }, 'NOT_ACTIVE'],
    [{ desired: 'paused', status: 'paused' }, 'NOT_ACTIVE'],
    [{ desired: 'deleted', status: 'deleting', purge_after: plane.clock.now() }, 'TENANT_DELETED'],
  ] as const) {
    const id = await plane.addTenant(columns)
    await t.rejects(restore(id), { code })
  }
  const failed = await plane.addTenant({ status: 'failed' })
  await t.rejects(
    asOperator((write) => store.request(failed, write)),
    { code: 'NOT_ACTIVE', message: 'The tenant is failed. It must be ready.' },
    'a backup of a failed tenant is rejected',
  )
})

t.test('the new generation supersedes operations in progress, except the restore', async (t) => {
  const id = await plane.addTenant({ status: 'failed' })
  await plane.request(id, 'resize', {})
  const { operation } = await restore(id)
  t.equal(await ledger.renew(id, undefined, plane.epoch), 3)
  const rows = await plane.sql('select kind, state from operations where tenant_id = $1 order by kind', [id])
  t.same(rows, [
    { kind: 'resize', state: 'superseded' },
    { kind: 'restore', state: 'pending' },
  ])
  t.equal(operation.kind, 'restore')
})

t.test('a job that the reconciler has taken over since it was read is not begun again', async (t) => {
  const id = await plane.addTenant({ desired: 'restoring' })
  const backupId = await backupOf(id)
  const operationId = randomUUID()
  await plane.sql(
    `insert into operations (id, tenant_id, kind, generation, state, backup_id) values ($1, $2, 'restore', 0, 'pending', $3)`,
    [operationId, id, backupId],
  )
  const [installed] = await plane.sql('select epoch from installation')
  const epoch = BigInt(String(installed?.['epoch']))
  const job = (await ledger.openJobs()).find((one) => one.operationId === operationId)
  if (job === undefined) throw new Error('The job is not open.')
  t.equal(await ledger.begin(job, epoch), true)
  await ledger.activate(job, epoch)
  t.equal(await ledger.begin(job, epoch), false)
})
