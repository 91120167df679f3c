// Who gets a connection when there are fewer than tenants that want one.
import t from 'tap'
import { Connections, defaultConnectionLimits, type ConnectionLimits } from '../../tenant-runtime/src/database/connections.ts'
import { ScopedDatabase } from '../../tenant-runtime/src/database/scoped-database.ts'
import type { RlsContext } from '../../tenant-runtime/src/tenancy/rls-context.ts'
import { createHome } from '../support/home.ts'
import { startPostgres } from '../support/postgres.ts'

const service: RlsContext = { role: 'service', reason: 'test' }

t.test('connections', async (t) => {
  const postgres = await startPostgres()
  t.teardown(() => postgres.stop())
  const homes = await Promise.all(Array.from({ length: 3 }, () => createHome(postgres)))
  const open = (limits: Partial<ConnectionLimits>, urlOf: (url: string) => string = (url) => url) => {
    const connections = new Connections({ ...defaultConnectionLimits, ...limits })
    t.teardown(() => connections.close())
    const databases = homes.map(({ tenantId, url, ddl_url }) => new ScopedDatabase(connections, { tenantId, url: urlOf(url), ddlUrl: ddl_url }))
    return { connections, databases }
  }

  t.test('are for every tenant in turn, however much one asks for', async (t) => {
    const { databases: [greedy, modest, late] } = open({ total: 2, perTenant: 2, waitMilliseconds: 20_000 })
    if (greedy === undefined || modest === undefined || late === undefined) throw new Error('three were made')
    let isOver = false
    let asked = 0
    const crowd = Array.from({ length: 20 }, async () => {
      for (; !isOver; asked++) await greedy.query(service, 'select 1')
    })
    // Without turns these would wait for as long as the crowd asks: for ever.
    for (const other of [modest, late, modest]) t.same((await other.query(service, 'select current_user::text as login')).rows, [{ login: other.tenantId }])
    isOver = true
    await Promise.all(crowd)
    t.ok(asked > 20, 'and the crowd went on')
  })

  t.test("that can't be opened leave nobody waiting", async (t) => {
    const { connections, databases: [database] } = open({ total: 1, perTenant: 1, waitMilliseconds: 20_000 }, (url) => url.replace(/:\d+\//, ':1/'))
    const outcomes = await Promise.allSettled(Array.from({ length: 5 }, async () => database?.query(service, 'select 1')))
    t.same(outcomes.map((outcome) => outcome.status === 'rejected' && (outcome.reason as { code: string }).code), Array(5).fill('DATABASE_UNAVAILABLE'))
    t.same(connections.load, { open: 0, idle: 0, waiting: 0 })
  })
})
