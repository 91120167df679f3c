// SQL that uses memory, disk and the queue of notifications.
import { effort } from '#test/support/effort.ts'
import type { Attack } from '../attack.ts'
import { openManySql, openSql, outcomeOf, repeatSql, trySql } from '../support/sql.ts'
import { allTargets } from '../support/target.ts'

export const loadAttacks: Attack[] = [
  {
    name: 'the queue of NOTIFY is filled',
    attacker: 'SQL',
    bound: 'share of the queue; nothing of the platform waits for NOTIFY',
    sees: /^(ok|54000|57P01|57014)|terminat|too many notifications/,
    smallRuns: ['shared Postgres'],
    createsTenants: true,
    async run(scene) {
      const holder = await openSql(scene, scene.attacker.databaseUrl)
      await holder.query('listen held')
      await holder.query('begin; select 1')
      const sessions = await openManySql(scene, scene.attacker, 4)
      const payload = 'x'.repeat(7_900)
      return repeatSql(
        scene,
        sessions,
        `select count(pg_notify('full', n || '${payload}')) from generate_series(1, 2000) as n`,
      )
    },
  },
  {
    name: "work_mem = '64GB' and a sort",
    attacker: 'SQL',
    bound: 'memory of a session',
    sees: /^57(014|P01)|terminat|memory/,
    targets: allTargets,
    smallRuns: ['shared Postgres', 'own Postgres'],
    async run(scene) {
      const session = await openSql(scene, scene.attacker.databaseUrl)
      await session.query("set work_mem = '64GB'")
      const sort = trySql(
        session,
        'select count(*) from (select n from (select n, md5(n::text) as m from generate_series(1, 1000000000) n) s order by m offset 1) t',
      )
      const limit = new Promise<string>((resolve) => setTimeout(() => resolve('still running after 20 s'), 20_000))
      return Promise.race([sort, limit])
    },
  },
  {
    name: 'rows until the disk is full',
    attacker: 'SQL',
    bound: 'WAL of a tenant; 120 % of the quota of documents',
    sees: /^(53100|53400|57P01|57014)|28000|terminat|quota/,
    smallRuns: ['shared Postgres'],
    async run(scene) {
      const session = await openSql(scene, scene.attacker.databaseUrl)
      await session.query('create table filling (text text); alter table filling alter text set storage external')
      const insert = "insert into filling select repeat('x', 1000000) from generate_series(1, 25)"
      for (let written = 0; written < effort({ small: 1_200, full: 3_000 }); written += 25) {
        const seen = await trySql(session, insert)
        if (seen === 'ok') continue
        const again = await outcomeOf(openSql(scene, scene.attacker.databaseUrl))
        return `${seen}; a new session: ${again}`
      }
      return 'ok'
    },
  },
]
