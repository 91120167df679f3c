// Schemas and relations that the runtime holds in memory.
import { effort } from '#test/support/effort.ts'
import type { Attack } from '../attack.ts'
import { repeat, send, withKey } from '../support/requests.ts'
import { openSql, trySql } from '../support/sql.ts'
import { addNotes } from '../support/tenants.ts'

export const schemaAttacks: Attack[] = [
  {
    name: 'descriptions of 90,000 columns with foreign keys, requested without end',
    attacker: 'anonymous',
    bound: 'a description is made in parts, and kept; bytes of results',
    sees: /^200, .*\b(200|413|429|503)/,
    async run(scene) {
      const { attacker } = scene
      const session = await openSql(scene, attacker.databaseUrl)
      const columns = Array.from({ length: 999 }, (_, n) => `column_with_a_long_name_${n} int`).join(', ')
      for (let n = 0; n < effort({ small: 20, full: 90 }); n++) {
        const keys = Array.from(
          { length: 50 },
          (_, key) => `, foreign key (column_with_a_long_name_${key}) references wide_0`,
        )
        await session.query(
          `create table wide_${n} (id int primary key, ${columns}${keys.join('')});
           alter table wide_${n} enable row level security`,
        )
      }
      const reloaded = await send(scene, `${attacker.url}/admin/reload-schemas`, {
        method: 'POST',
        headers: withKey(attacker),
      })
      const described = await repeat(scene, 8, () => send(scene, `${attacker.url}/rest/v1/`))
      return `${reloaded}, ${described}`
    },
  },
  {
    name: 'tables with 1,000 columns each, published by a reload and described',
    attacker: 'SQL',
    bound: '2,000 relations of a home',
    sees: /\b(200|409|413|422|429|503) ?/,
    smallRuns: [],
    async run(scene) {
      const { attacker } = scene
      const session = await openSql(scene, attacker.databaseUrl)
      const columns = Array.from({ length: 1_000 }, (_, n) => `column_with_a_long_name_${n} text`).join(', ')
      for (let n = 0; n < effort({ small: 60, full: 1_000 }); n++) {
        const seen = await trySql(session, `create table wide_${n} (id int primary key, ${columns})`)
        if (seen !== 'ok') break
      }
      const headers = withKey(attacker)
      const reloaded = await send(scene, `${attacker.url}/admin/reload-schemas`, { method: 'POST', headers })
      const described = await repeat(scene, 8, () => send(scene, `${attacker.url}/rest/v1/`, { headers }))
      return `${reloaded}, ${described}`
    },
  },
  {
    name: 'reloads without end',
    attacker: 'service key',
    bound: "the tenant's rate; one reload at a time",
    sees: /\b(200|409|429|503) ?/,
    smallRuns: [],
    async run(scene) {
      await addNotes(scene.attacker)
      const headers = withKey(scene.attacker)
      return repeat(scene, 16, () =>
        send(scene, `${scene.attacker.url}/admin/reload-schemas`, { method: 'POST', headers }),
      )
    },
  },
  {
    name: '100 schemas of 60 MB written by SQL, then listed and reloaded',
    attacker: 'SQL',
    bound: 'bytes of a whole round trip; age of a transaction',
    sees: /\b(4\d\d|503) |57014|57P01/,
    async run(scene) {
      const { attacker } = scene
      const session = await openSql(scene, attacker.databaseUrl)
      const written = await trySql(
        session,
        `insert into schemas (name, fields, rls_policy) select 'large_' || n, jsonb_build_array(repeat('x', 60000000)), '{}'
         from generate_series(1, ${effort({ small: 10, full: 100 })}) n`,
      )
      const headers = withKey(attacker)
      const seen = await repeat(scene, 4, (n) =>
        n % 2 === 0
          ? send(scene, `${attacker.url}/rest/v1/schemas`, { headers })
          : send(scene, `${attacker.url}/admin/reload-schemas`, { method: 'POST', headers }),
      )
      return `${written}, ${seen}`
    },
  },
]
