// Attempts to get what others have: logins of the services, the quota of a tenant.
import { effort } from '#test/support/effort.ts'
import type { Attack } from '../attack.ts'
import { repeat, send, withKey } from '../support/requests.ts'
import { openSql, outcomeOf } from '../support/sql.ts'
import { allTargets } from '../support/target.ts'

export const accessAttacks: Attack[] = [
  {
    name: "a function that sets the password of the runtime's login, and logins with it",
    attacker: 'service key',
    bound: "the services' logins do not depend on their passwords",
    sees: /^logins: (28|53300|08|ECONN|42704|no pg_hba|closed|Connection)/,
    smallRuns: ['shared Postgres'],
    async run(scene) {
      const { attacker } = scene
      const session = await openSql(scene, attacker.databaseUrl)
      await session.query(`create function take_over() returns text language plpgsql as
        $$ begin execute format('alter role %I password ''taken''', current_user); return current_user; end $$`)
      const headers = { ...withKey(attacker), 'content-type': 'application/json' }
      await send(scene, `${attacker.url}/admin/reload-schemas`, { method: 'POST', headers, body: '{}' })
      await send(scene, `${attacker.url}/rest/v1/rpc/take_over`, { method: 'POST', headers, body: '{}' })
      const url = new URL(attacker.databaseUrl)
      url.username = attacker.id
      url.password = 'taken'
      const seen = await Promise.all(
        scene.postgresPorts.flatMap((port) => {
          url.port = String(port)
          return Array.from({ length: effort({ small: 10, full: 48 }) }, () => outcomeOf(openSql(scene, url.href)))
        }),
      )
      await new Promise((resolve) => setTimeout(resolve, scene.milliseconds))
      return `logins: ${seen.find((text) => text === 'ok') ?? seen[0] ?? ''}`
    },
  },
  {
    name: '401s at 100/s',
    attacker: 'anonymous',
    bound: 'rejected requests do not count; rejections of an address',
    sees: /^(401|429) .*: 0 of the quota$/,
    targets: allTargets,
    smallRuns: ['shared Postgres'],
    async run(scene) {
      const headers = { authorization: 'Bearer tn_secret_wrong' }
      const seen = await repeat(scene, 4, async () => {
        await new Promise((resolve) => setTimeout(resolve, 40))
        return send(scene, `${scene.attacker.url}/rest/v1/notes`, { headers })
      })
      // The gateways report their counters every second.
      await new Promise((resolve) => setTimeout(resolve, 1_500))
      const { text } = await scene.control('GET', `/v1/tenants/${scene.attacker.id}/usage`)
      const used = /"api_requests":\{"count":(\d+)/.exec(text)?.[1] ?? text
      return `${seen}: ${used} of the quota`
    },
  },
]
