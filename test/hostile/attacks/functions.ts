// Functions that use up what all tenants' functions share.
import { command, constant, drop, forever } from '#test/functions/support/wasm.ts'
import { effort } from '#test/support/effort.ts'
import type { Attack } from '../attack.ts'
import { repeat, send, summary, withKey } from '../support/requests.ts'
import { openSql, repeatSql } from '../support/sql.ts'
import { addNotes, deploy } from '../support/tenants.ts'
import { allTargets } from '../support/target.ts'

export const functionAttacks: Attack[] = [
  {
    name: 'four tenants with endless functions, 16 calls each',
    attacker: 'deployer',
    bound: 'a tenant has at most half of the executors; tenants take turns; a run ends when its caller leaves',
    sees: /504 FUNCTION_TIMEOUT|503 FUNCTION|429/,
    targets: allTargets,
    async run(scene) {
      const more = await Promise.all(Array.from({ length: 3 }, () => scene.anotherTenant()))
      const tenants = [scene.attacker, ...more]
      const wasm = command({ code: forever })
      for (const tenant of tenants) {
        await deploy(tenant, 'endless', wasm, { config: { timeout: 300 } })
        await deploy(tenant, 'second', wasm, { config: { timeout: 1 } })
      }
      const leave = new AbortController()
      for (const tenant of tenants)
        for (let n = 0; n < 12; n++)
          fetch(`${tenant.url}/functions/v1/invoke/endless`, {
            method: 'POST',
            headers: withKey(tenant),
            signal: leave.signal,
          }).catch(() => undefined)
      scene.onEnd(() => leave.abort())
      const seen = await Promise.all(
        tenants.map((tenant) =>
          repeat(scene, 4, () =>
            send(scene, `${tenant.url}/functions/v1/invoke/second`, { method: 'POST', headers: withKey(tenant) }),
          ),
        ),
      )
      return summary(seen)
    },
  },
  {
    name: 'functions that log without end',
    attacker: 'deployer',
    bound: '64 KB of log for each run; executors of a tenant',
    sees: /\b(200|429|500|502|503|504) /,
    targets: allTargets,
    smallRuns: ['shared Postgres', 'own Postgres'],
    async run(scene) {
      const { attacker } = scene
      // fd_write(1, 0, 1, 8) again and again: the vector at address 0 names 64 KB of memory.
      const write = [...constant(1), ...constant(0), ...constant(1), ...constant(8), 0x10, 0x00, drop]
      const vector = [...constant(4), ...constant(65_000), 0x36, 0x02, 0x00]
      const wasm = command({
        imports: ['fd_write'],
        memory: [0, 2],
        code: [...vector, 0x03, 0x40, ...write, 0x0c, 0x00, 0x0b],
      })
      await deploy(attacker, 'talks', wasm, { config: { timeout: 2 } })
      return repeat(scene, 8, () =>
        send(scene, `${attacker.url}/functions/v1/invoke/talks`, { method: 'POST', headers: withKey(attacker) }),
      )
    },
  },
  {
    name: 'a function that a change of its own table starts, without end',
    attacker: 'deployer',
    bound: 'executors and turns of a tenant; waiting deliveries count as documents',
    sees: /^(ok|42501|5\d\d|P0001)|terminat/,
    async run(scene) {
      const { attacker } = scene
      await addNotes(attacker)
      await deploy(attacker, 'slow', command({ code: forever }), {
        trigger: { Database: { table: 'notes', operation: 'Insert' } },
        config: { timeout: 1 },
      })
      const session = await openSql(scene, attacker.databaseUrl)
      return repeatSql(scene, [session], "insert into notes (text) select 'x' from generate_series(1, 1000)")
    },
  },
  {
    name: '200 functions that start every minute',
    attacker: 'deployer',
    bound: 'the number of functions; executors and turns of a tenant',
    sees: /\b(201|4\d\d) ?/,
    smallRuns: [],
    async run(scene) {
      const wasm = command({ code: forever })
      const seen: string[] = []
      for (let n = 0; n < effort({ small: 20, full: 200 }) && !scene.isOver(); n++)
        seen.push(
          await deploy(scene.attacker, `minute-${n}`, wasm, {
            trigger: { Schedule: { cron: '* * * * *' } },
            config: { timeout: 300 },
          }).then(
            () => '201',
            (error: unknown) => (error instanceof Error ? error.message : String(error)),
          ),
        )
      return summary(seen)
    },
  },
  {
    name: 'calls with bodies of 6 MB that wait for executors',
    attacker: 'deployer',
    bound: "the tenant's share of the bytes in flight; waiting calls of a function",
    sees: /\b(413|429|503|504) /,
    async run(scene) {
      const { attacker } = scene
      const names = Array.from({ length: effort({ small: 3, full: 10 }) }, (_, n) => `waiting-${n}`)
      const wasm = command({ code: forever })
      for (const name of names) await deploy(attacker, name, wasm, { config: { timeout: 1 } })
      const body = Buffer.alloc(6_000_000, 'x')
      return repeat(scene, effort({ small: 60, full: 400 }), (n) => {
        const url = `${attacker.url}/functions/v1/invoke/${names[n % names.length] ?? ''}`
        const call = send(scene, url, { method: 'POST', headers: withKey(attacker), body })
        const left = new Promise<string>((resolve) => setTimeout(() => resolve('waiting'), scene.milliseconds))
        return Promise.race([call, left])
      })
    },
  },
]
