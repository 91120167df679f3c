// SQL that takes what all tenants of a server share: locks, relations, open transactions.
import { effort } from '#test/support/effort.ts'
import type { Attack, Scene } from '../attack.ts'
import { openManySql, openSql, trySql } from '../support/sql.ts'
import { summary } from '../support/requests.ts'

/** Returns SQL that creates tables in one transaction; each takes a lock until it ends. */
const createTables = (prefix: string, count: number, columns: string) =>
  `do $$ begin for n in 1..${count} loop execute format('create table ${prefix}_%s (${columns})', n); end loop; end $$`

/** Runs until the attack is over, in steps, so that a closed session ends it. */
async function hold(scene: Scene, work: () => Promise<string>): Promise<string> {
  let last = 'open'
  while (!scene.isOver()) {
    await new Promise((resolve) => setTimeout(resolve, 200))
    last = await work()
    if (last !== 'ok') return last
  }
  return last
}

export const lockAttacks: Attack[] = [
  {
    name: '70,000 tables, created and locked by ten sessions',
    attacker: 'SQL',
    bound: '2,000 relations of a home; locks of a tenant',
    sees: /relation|lock|terminat/i,
    createsTenants: true,
    async run(scene) {
      const sessions = await openManySql(scene, scene.attacker, 10)
      const count = effort({ small: 300, full: 7_000 })
      return summary(
        await Promise.all(
          sessions.map(async (session, n) => {
            await trySql(session, 'begin')
            return trySql(session, createTables(`locked_${n}`, count, 'a int'))
          }),
        ),
      )
    },
  },
  {
    name: '34,000 tables with primary keys, then the deletion of the tenant',
    attacker: 'SQL',
    bound: '2,000 relations of a home; a purge in batches',
    sees: /relation/i,
    smallRuns: [],
    createsTenants: true,
    async run(scene) {
      const session = await openSql(scene, scene.attacker.databaseUrl)
      const batch = 250
      for (let n = 0; n < effort({ small: 3_000, full: 34_000 }) / batch; n++) {
        const seen = await trySql(session, createTables(`keyed_${n}`, batch, 'a int primary key'))
        if (seen !== 'ok') return seen
      }
      return 'ok'
    },
  },
  {
    name: 'a transaction that wrote something and stays open',
    attacker: 'SQL',
    bound: 'age of a transaction; event streams wait only for writers of their own tenant',
    sees: /^(ok|25P0|57P01)|terminat/,
    async run(scene) {
      const session = await openSql(scene, scene.attacker.databaseUrl)
      await session.query('create table written (a int)')
      await session.query('begin; insert into written values (1)')
      return hold(scene, () => trySql(session, 'select 1'))
    },
  },
  {
    name: "a policy that names another tenant's role, and a lock on its table",
    attacker: 'SQL',
    bound: 'a purge ends the sessions that block it',
    sees: /the other tenant: deleted/,
    smallRuns: ['shared Postgres'],
    createsTenants: true,
    async run(scene) {
      const victim = await scene.anotherTenant()
      const session = await openSql(scene, scene.attacker.databaseUrl)
      await session.query('create table bait (a int)')
      const policy = await trySql(session, `create policy trap on bait to "${victim.id}", "${victim.id}_owner"`)
      await session.query('begin; lock table bait in access exclusive mode')
      const { text } = await scene.control('DELETE', `/v1/tenants/${victim.id}?purge=true`)
      return `${policy}; the other tenant: ${text.includes('"state":"succeeded"') ? 'deleted' : text.slice(0, 300)}`
    },
  },
]
