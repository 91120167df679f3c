// Runtimes and Postgres are killed under many users of many tenants, who send messages of all kinds through the gateway. No
// message reaches another tenant or a user who may not read it, and what is promised arrives, each message once on a channel.
import { setTimeout as pause } from 'node:timers/promises'
import t from 'tap'
import { chanceOf } from '#test/simulation/chance.ts'
import { effort, seed } from '#test/support/effort.ts'
import { removeInstallation, startInstallation } from '#test/support/installation.ts'
import { until } from '#test/support/until.ts'
import { prepareTenant, type TenantAddress } from './support/chaos-address.ts'
import { ChaosTenant } from './support/chaos-tenant.ts'

const counts = {
  tenants: effort({ small: 4, full: 20 }),
  /** Users of each tenant. */
  users: effort({ small: 10, full: 50 }),
  messages: effort({ small: 1_500, full: 100_000 }),
  kills: effort({ small: 3, full: 12 }),
  /** Messages that are in progress at a time. */
  senders: effort({ small: 16, full: 64 }),
}
const victims = ['runtime-0', 'postgres', 'runtime-1']

t.test('Channels while services are killed', { timeout: 7_200_000 }, async (t) => {
  const chance = chanceOf(seed)
  const violations: string[] = []
  const installation = await startInstallation({ runtimes: 2 })
  t.teardown(() => removeInstallation(installation))
  const tenants: ChaosTenant[] = []
  t.teardown(() => {
    for (const tenant of tenants) tenant.stop()
  })
  for (let n = 0; n < counts.tenants; n++) {
    const name = `chaos-${n}`
    const response = await fetch(`${installation.controlUrl}/v1/tenants`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${installation.platformKey}`,
        'content-type': 'application/json',
        prefer: 'wait=30',
      },
      body: JSON.stringify({ name, plan: 'Pro', region: 'local', isolation: 'schema-per-tenant' }),
    })
    const created = (await response.json()) as { database_url: string; keys: TenantAddress['keys'] }
    const address = {
      url: `${installation.gatewayUrl}/t/${name}`,
      databaseUrl: created.database_url,
      keys: created.keys,
    }
    const tenant = new ChaosTenant(name, address, chance, (what) => violations.push(what))
    tenants.push(tenant)
    await prepareTenant(address)
  }
  // SQL needs connections, which the users' queries would use.
  for (const tenant of tenants) tenant.connect(counts.users)
  const untilSettled = () =>
    until(() => tenants.every(({ isSettled }) => isSettled), 'all users on all channels', 300_000)
  await untilSettled()

  const sum = (count: keyof ChaosTenant['counts']) => tenants.reduce((total, tenant) => total + tenant.counts[count], 0)
  const report = () =>
    t.comment(
      `seed ${seed}: ${sum('sent')} sent, ${sum('acknowledged')} acknowledged, ${sum('received')} received, ${sum('replayed')} replayed`,
    )

  for (let kill = 0; kill < counts.kills; kill++) {
    const victim = victims[kill % victims.length] ?? ''
    const pid = await installation.pid(victim)
    let left = Math.ceil(counts.messages / counts.kills)
    const killAt = chance.below(left)
    let isKilled = false
    const send = async () => {
      while (left > 0) {
        left--
        if (!isKilled && left <= killAt) {
          isKilled = true
          process.kill(pid, 'SIGKILL')
        }
        const isAcknowledged = await chance.pick(tenants).sendRandom()
        // Without a connection, nothing is sent.
        if (isAcknowledged === undefined) left++
        if (isAcknowledged !== true) await pause(20)
      }
    }
    await Promise.all(Array.from({ length: counts.senders }, send))
    await until(async () => (await installation.pid(victim)) !== pid, `the next process of ${victim}`)
    await untilSettled()
    for (const tenant of tenants) await tenant.sendMarkers()
    for (const tenant of tenants) {
      let missing: string[] = []
      const isComplete = async () =>
        (missing = await tenant.missing().catch((error: unknown) => [String(error)])).length === 0
      await until(isComplete, 'everything that is due').catch(() =>
        t.same(missing.slice(0, 5), [], `kill ${kill} of ${victim}`),
      )
      tenant.checkpoint()
    }
    t.same(violations.slice(0, 5), [], `kill ${kill} of ${victim}`)
    report()
    if (violations.length > 0) break
  }

  t.ok(sum('sent') >= counts.messages && sum('acknowledged') > 0.5 * sum('sent') && sum('received') > sum('sent'))
  t.ok(sum('replayed') > 0, 'stored messages were replayed')
})
