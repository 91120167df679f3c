// Old operations are deleted in batches. Operations in progress and the latest one of each tenant stay.
import { randomUUID } from 'node:crypto'
import t from 'tap'
import { openDatabase } from '#control-plane/platform/database.ts'
import { deleteBatch } from '#control-plane/tenants/jobs-old-operations.ts'
import { createOldOperations } from '#control-plane/tenants/store-old-operations.ts'
import { startApi } from '#test/support/control-plane/api.ts'

const now = new Date('2026-06-01T00:00:00Z')
const daysAgo = (days: number) => new Date(now.getTime() - days * 86_400_000)

t.test('Finished operations are deleted after their days', async (t) => {
  const api = await startApi(t)
  const database = openDatabase(api.controlUrl)
  t.teardown(() => database.$disconnect())
  const store = createOldOperations(database)
  const add = async (tenantId: string, state: string, days: number) => {
    const id = randomUUID()
    await database.operation.create({
      data: { id, tenantId, kind: 'update', generation: 1, state, createdAt: daysAgo(days) },
    })
    return id
  }
  await add('t_1', 'succeeded', 40)
  await add('t_1', 'failed', 35)
  await add('t_1', 'superseded', 31)
  const stays = [
    await add('t_1', 'pending', 33),
    await add('t_1', 'running', 32),
    await add('t_1', 'succeeded', 29),
    await add('t_2', 'succeeded', 100),
  ]
  t.equal(await store.remove(daysAgo(30), 2), 2, 'no more than a batch')
  t.equal(
    await deleteBatch({ store, days: 30, clock: { now: () => now } }),
    3_600_000,
    'the next batch follows in an hour',
  )
  t.same((await database.operation.findMany()).map(({ id }) => id).toSorted(), stays.toSorted())
})
