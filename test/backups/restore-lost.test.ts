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
  t.equal(await ledger.renew(id, plane.epoch), 3)
  const rows = await plane.sql('select kind, state from operations where tenant_id = $1 order by kind', [id])
  t.same(rows, [
    { kind: 'resize', state: 'superseded' },
    { kind: 'restore', state: 'pending' },
  ])
  t.equal(operation.kind, 'restore')
})
