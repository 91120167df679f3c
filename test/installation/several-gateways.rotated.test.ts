// Several gateways of `npm start` share the public port: each serves, changes of tenants reach all of them, and the end of one
// interrupts no others. Usage remains exact, also after a start with fewer gateways.
import { once } from 'node:events'
import { readFile, stat } from 'node:fs/promises'
import { connect } from 'node:net'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { internalPaths, internalTokenHeader } from '@tenantry/contract'
import pg from 'pg'
import t from 'tap'
import { chanceOf } from '#test/simulation/chance.ts'
import { controlCall } from '#test/support/control-call.ts'
import { effort, seed } from '#test/support/effort.ts'
import { controlSql, removeInstallation, startInstallation, type Installation } from '#test/support/installation.ts'
import { until } from '#test/support/until.ts'
import { MeteredRequests, emptyTally, isBetween, settled } from './support/metered-requests.ts'

const kills = effort({ small: 3, full: 60 })
const changes = effort({ small: 3, full: 30 })
const connections = 16
const services = ['gateway', 'gateway-1']
const path = '/storage/v1/object/system/kept.txt'

let installation: Installation

interface Tenant {
  id: string
  name: string
  key: string
  databaseUrl: string
}

async function createTenant(name: string): Promise<Tenant> {
  const rate = { per_second: 10_000, burst: 10_000 }
  const body = await controlCall(installation, 'POST', '/v1/tenants', {
    name,
    plan: 'Pro',
    region: 'local',
    rate_limit: rate,
  })
  const { secret_key: key } = body['keys'] as { secret_key: string }
  return { id: String(body['tenant_id']), name, key, databaseUrl: String(body['database_url']) }
}

/** Returns a client of a tenant's database that shows the key with which its queries are canceled. */
function sqlClient({ databaseUrl }: Tenant): pg.Client & { processID: number; secretKey: number } {
  return new pg.Client({ connectionString: databaseUrl }) as pg.Client & { processID: number; secretKey: number }
}

/** Returns what each gateway responds to a call of another part. */
async function ofGateways(path: string): Promise<string[]> {
  const [region] = JSON.parse(await readFile(join(installation.data, 'regions.json'), 'utf8')) as {
    gateway_internal_urls: string[]
  }[]
  const token = (await readFile(join(installation.data, 'secrets/internal-token'), 'utf8')).trim()
  const urls = region?.gateway_internal_urls ?? []
  return Promise.all(
    urls.map(async (url) => (await fetch(`${url}${path}`, { headers: { [internalTokenHeader]: token } })).text()),
  )
}

/** Returns the number of requests that each gateway has served. */
async function servedByGateways(): Promise<number[]> {
  const served = /^tenantry_gateway_requests_total\{outcome="served",status="\dxx"\} (\d+)$/gm
  return (await ofGateways('/metrics')).map((text) =>
    [...text.matchAll(served)].reduce((sum, [, count]) => sum + Number(count), 0),
  )
}

async function requestsInUsage({ id }: Tenant): Promise<number> {
  const { resources } = await controlCall<{ resources: { api_requests: { count: number } } }>(
    installation,
    'GET',
    `/v1/tenants/${id}/usage`,
  )
  return resources.api_requests.count
}

t.test('Several gateways', { timeout: 300_000 }, async (t) => {
  t.comment(`seed ${seed}`)
  const random = chanceOf(seed).next
  installation = await startInstallation({ runtimes: 1, gateways: 2 })
  t.teardown(() => removeInstallation(installation))
  const tenant = await createTenant('counted')
  const all = emptyTally()
  const load = (keepAlive: boolean) => {
    const requests = new MeteredRequests({ ...tenant, gatewayUrl: installation.gatewayUrl }, { connections, keepAlive })
    t.teardown(() => requests.end())
    return requests
  }
  /** Statuses of the requests of all loads. */
  const statuses = new Set<number | undefined>()
  const get = async (requests: MeteredRequests) => {
    const status = await requests.send(all, 'GET', path)
    statuses.add(status)
    return status
  }

  await t.test('Requests reach both gateways', async (t) => {
    const requests = load(false)
    t.equal(await requests.send(all, 'POST', path, { body: 'kept', type: 'text/plain' }), 200)
    t.same(new Set(await Promise.all(Array.from({ length: 63 }, () => get(requests)))), new Set([200]))
    await requests.end()
    const served = await servedByGateways()
    t.ok(
      served.every((count) => count > 8),
      served.join(' and '),
    )
    t.equal(
      served.reduce((sum, count) => sum + count, 0),
      64,
    )
  })

  await t.test('Creations, suspensions and resumptions reach both gateways before their operations end', async (t) => {
    const routes = async (id: string) =>
      (await ofGateways(internalPaths.route(id))).map((text) => JSON.parse(text) as { phase: string; leased: boolean })
    for (let change = 0; change < changes; change++) {
      const { id } = await createTenant(`changed-${change}`)
      const ready = { phase: 'ready', leased: true }
      t.match(await routes(id), [ready, ready], 'created')
      await controlCall(installation, 'PATCH', `/v1/tenants/${id}`, { suspended: true })
      t.match(await routes(id), [{ phase: 'suspended' }, { phase: 'suspended' }])
      await controlCall(installation, 'PATCH', `/v1/tenants/${id}`, { suspended: false })
      t.match(await routes(id), [ready, ready], 'resumed')
    }
  })

  await t.test('The first gateway alone serves SQL clients, and cancels their queries', async (t) => {
    const client = sqlClient(tenant)
    t.teardown(() => client.end())
    await client.connect()
    const { hostname, port } = new URL(tenant.databaseUrl)
    // A request to cancel is a connection of its own, which must arrive at the gateway that has the session.
    for (let round = 0; round < 8; round++) {
      const begun = once(client, 'notice')
      const canceled = t.rejects(client.query("do $$ begin raise notice 'begun'; perform pg_sleep(60); end $$"), {
        code: '57014',
      })
      await begun
      const packet = Buffer.alloc(16)
      for (const [at, value] of [16, 80_877_102, client.processID, client.secretKey].entries())
        packet.writeInt32BE(value, 4 * at)
      connect({ host: hostname, port: Number(port) })
        .resume()
        .end(packet)
      await canceled
    }
  })

  await t.test('While one gateway after the other is killed, the other accepts connections', async (t) => {
    const [reused, single] = [load(true), load(false)]
    for (const requests of [reused, single]) requests.start(() => get(requests))
    for (let kill = 0; kill < kills; kill++) {
      await wait(100 + random() * 400)
      const service = services[kill % 2] ?? ''
      const killed = await installation.pid(service)
      process.kill(killed, 'SIGKILL')
      await until(async () => (await installation.pid(service)) !== killed, `the next process of ${service}`)
      const before = await servedByGateways().catch(() => [])
      const isServing = async () => {
        const served = await servedByGateways().catch(() => [])
        return served.length === 2 && served.every((count, at) => count > (before[at] ?? 0))
      }
      await until(isServing, 'both gateways serve')
    }
    await Promise.all([reused.end(), single.end()])
    t.comment(`${kills} kills: ${JSON.stringify(all)}`)
    t.equal(all.unreachable, 0, 'no connection was refused')
    t.ok(all.lost > 0, 'requests were in progress at a kill')
    t.ok(all.lost <= kills * 2 * 2 * connections)
    statuses.delete(undefined)
    t.same(statuses, new Set([200]), 'each response is that of the runtime')
    const inUsage = await settled(
      () => requestsInUsage(tenant),
      (now) => now >= all.responses,
    )
    isBetween(t, 'requests', [all.responses, inUsage, all.responses + all.lost])
  })

  await t.test('A start with one gateway sends what a killed second one had counted, and removes it', async (t) => {
    const requests = load(false)
    requests.start(() => get(requests))
    await wait(1_500)
    await installation.killAll()
    await requests.end()
    const journal = join(installation.data, 'gateway-1', 'journal')
    t.ok((await stat(journal)).isDirectory())
    installation = await startInstallation({ dataDirectory: installation.data, runtimes: 1 })
    await t.rejects(stat(journal), { code: 'ENOENT' })
    const inUsage = await settled(
      () => requestsInUsage(tenant),
      (now) => now >= all.responses,
    )
    isBetween(t, 'requests', [all.responses, inUsage, all.responses + all.lost])
    const [held] = await controlSql(
      installation,
      `select
        (select count(*)::int from request_leases l join lease_holders h using (source, boot)
          where source = 'gateway-local-1' and not h.ended) as leases,
        (select coalesce(sum(slots), 0)::int from connection_slots where source = 'gateway-local-1') as slots,
        (select retired_at is not null from usage_sources where source = 'gateway-local-1') as ended`,
    )
    t.same(held, { leases: 0, slots: 0, ended: true }, 'it holds nothing, and no hour waits for it')
    const served = await fetch(`${installation.gatewayUrl}/t/counted${path}`, {
      headers: { authorization: `Bearer ${tenant.key}` },
    })
    t.equal(await served.text(), 'kept')
  })
})
