// Requests whose results are large.
import { effort } from '#test/support/effort.ts'
import type { Attack } from '../attack.ts'
import { repeat, send, summary, withKey } from '../support/requests.ts'
import { openSql, trySql } from '../support/sql.ts'
import { addNotes, callTenant } from '../support/tenants.ts'

export const queryAttacks: Attack[] = [
  {
    name: '100 functions of 60 MB written by SQL, then listed',
    attacker: 'SQL',
    bound: 'only the service writes its tables',
    sees: /^42501 permission denied/,
    async run(scene) {
      const { attacker } = scene
      const client = await openSql(scene, attacker.databaseUrl)
      const written = await trySql(
        client,
        `insert into functions (name, description, trigger_type, wasm_hash, wasm_data, config)
         select 'large' || n, repeat('x', 60000000), 'Http', repeat('0', 64), '', '{}'
         from generate_series(1, ${effort({ small: 10, full: 100 })}) n`,
      )
      const listed = await repeat(scene, 2, () =>
        send(scene, `${attacker.url}/functions/v1`, { headers: withKey(attacker) }),
      )
      return `${written === 'ok' ? '' : `${written}, `}${listed}`
    },
  },
  {
    name: 'a select that names a column of 600 kB 1,600 times',
    attacker: 'anonymous',
    bound: 'a column 4 times, 200 outputs in a select',
    sees: /\b400 PGRST100/,
    async run(scene) {
      await addNotes(scene.attacker)
      await callTenant(scene.attacker, 'POST', '/rest/v1/notes', JSON.stringify({ text: 'x'.repeat(600_000) }))
      const columns = Array.from({ length: effort({ small: 400, full: 1_600 }) }, (_, n) => `c${n}:text`)
      return repeat(scene, 4, () => send(scene, `${scene.attacker.url}/rest/v1/notes?select=${columns.join(',')}`))
    },
  },
  {
    name: 'statements of nine tenants that wait until their time limit',
    attacker: 'service key',
    bound: 'a tenant leaves as many connections for others as it has',
    sees: /\b(200|429|503) ?/,
    smallRuns: ['shared Postgres'],
    async run(scene) {
      const others = await Promise.all(
        Array.from({ length: effort({ small: 6, full: 8 }) }, () => scene.anotherTenant()),
      )
      const tenants = [scene.attacker, ...others]
      for (const tenant of tenants) {
        const session = await openSql(scene, tenant.databaseUrl)
        await session.query("create function nap() returns text language sql as $$ select 'x' from pg_sleep(20) $$")
        await callTenant(tenant, 'POST', '/admin/reload-schemas', '{}')
      }
      const seen = await Promise.all(
        tenants.map((tenant) =>
          repeat(scene, 16, () => {
            const headers = { ...withKey(tenant), 'content-type': 'application/json' }
            const call = send(scene, `${tenant.url}/rest/v1/rpc/nap`, { method: 'POST', headers, body: '{}' })
            const left = new Promise<string>((resolve) => setTimeout(() => resolve('200 (left)'), 8_000))
            return Promise.race([call, left])
          }),
        ),
      )
      return summary(seen)
    },
  },
]
