// Who may be restored in place, on a real control database: a tenant that runs, and one that has lost what it ran on.
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

t.test('a tenant that is ready or has failed is restored in place', async (t) => {
  for (const columns of [
    {},
    {
      status: 'failed',
      reason: 'the volume "data" is gone, and with it what it held; nothing is started on an empty one',
    },
  ]) {
    const id = await plane.addTenant(columns)
    t.match(await restore(id), { operation: { kind: 'restore', state: 'pending', tenantId: id } })
    await t.rejects(restore(id), { code: 'OPERATION_UNDER_WAY' })
  }
})

t.test('one that is pending, stopped or being deleted is not', async (t) => {
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
    { code: 'NOT_ACTIVE', message: 'the tenant is failed; it must be ready' },
    'and of one that has failed no backup is taken',
  )
})

t.test('what was under way when the home was lost ends with the new generation, the restore does not', async (t) => {
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
