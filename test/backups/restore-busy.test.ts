// A restore over a tenant that another operation is changing is rejected, and changes nothing.
import { randomUUID } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { startApi } from '#test/support/control-plane/api.ts'
import { until } from '#test/support/until.ts'

t.test('a restore over a tenant that is being changed', async (t) => {
  const directory = await mkdtemp(join(tmpdir(), 'tenantry-busy-'))
  t.teardown(() => rm(directory, { recursive: true, force: true }))
  const installation = randomUUID()
  const api = await startApi(t, { jobs: false, backups: { directory, installation } })
  const { tenant_id: id } = await api.create()
  // Its end would set the status again.
  const isReady = async () =>
    ((await api.call('GET', `/v1/tenants/${id}`)).body as { status: string }).status === 'ready'
  await until(isReady, 'a ready tenant')
  const backupId = randomUUID()
  const sealed = Buffer.from(api.seal.seal('key', `backup:${backupId}`))
  await api.sql(
    `insert into backups (id, tenant_id, region_id, state, trigger, key, manifest_hash)
     values ($1, $2, 'local', 'complete', 'request', $3, 'x')`,
    [backupId, id, sealed],
  )
  const restore = () => api.call('POST', `/v1/backups/${backupId}/restore`, { body: { into: 'same' } })
  const setStatus = (status: string) => api.sql('update tenants set status = $2 where id = $1', [id, status])
  const operation = async (kind: string, state: string) => {
    const operationId = randomUUID()
    await api.sql('insert into operations (id, tenant_id, kind, state, generation) values ($1, $2, $3, $4, 0)', [
      operationId,
      id,
      kind,
      state,
    ])
    return operationId
  }
  const settle = () => api.sql("update operations set state = 'succeeded' where tenant_id = $1", [id])
  const restores = async () => (await api.sql("select 1 from operations where kind = 'restore'")).length

  await settle()
  await setStatus('ready')
  for (const kind of ['update', 'suspend', 'backup', 'restore'])
    for (const state of ['pending', 'running']) {
      const operationId = await operation(kind, state)
      t.match(
        await restore(),
        { status: 423, body: { code: 'OPERATION_IN_PROGRESS', operation_id: operationId } },
        kind,
      )
      await settle()
    }
  t.equal(await restores(), 2, 'only those of this test')
  await setStatus('suspended')
  t.match(await restore(), { status: 409, body: { code: 'NOT_ACTIVE' } })
  await setStatus('failed')
  await operation('update', 'running')
  t.match(await restore(), { status: 202 }, 'a failed tenant is restored although its change cannot end')
  t.match(await restore(), { status: 423, body: { code: 'OPERATION_IN_PROGRESS' } }, 'once at a time')
  await settle()
  await setStatus('ready')
  t.match(await restore(), { status: 202 })
})
