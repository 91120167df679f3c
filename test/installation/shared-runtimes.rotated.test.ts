// Several runtimes share the tenants of `npm start`: the end of one affects its own tenants only and briefly, nothing is lost
// or counted twice, and another number of runtimes at the next start changes nothing for tenants.
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { runtimeOf } from '@tenantry/contract'
import t, { type Test } from 'tap'
import { command } from '#test/functions/support/wasm.ts'
import { effort } from '#test/support/effort.ts'
import { controlCall } from '#test/support/control-call.ts'
import { removeInstallation, startInstallation, type Installation } from '#test/support/installation.ts'
import { until } from '#test/support/until.ts'

const kills = effort({ small: 2, full: 20 })

interface Tenant {
  id: string
  name: string
  key: string
  /** Requests that got a response, by status. */
  statuses: Map<number, number>
  invocations: number
}

let installation: Installation

async function createTenant(name: string): Promise<Tenant> {
  const { tenant_id: id, keys } = await controlCall(installation, 'POST', '/v1/tenants', {
    name,
    plan: 'Enterprise',
    region: 'local',
  })
  const { secret_key: key } = keys as { secret_key: string }
  return { id: String(id), name, key, statuses: new Map(), invocations: 0 }
}

/** Sends a request to a tenant and counts its status. */
async function send(tenant: Tenant, method: string, path: string, body?: FormData | string): Promise<string> {
  const response = await fetch(`${installation.gatewayUrl}/t/${tenant.name}${path}`, {
    method,
    headers: { authorization: `Bearer ${tenant.key}` },
    ...(body === undefined ? {} : { body }),
  })
  const text = await response.text()
  tenant.statuses.set(response.status, (tenant.statuses.get(response.status) ?? 0) + 1)
  if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`)
  return text
}

async function fill(tenant: Tenant): Promise<void> {
  await send(tenant, 'POST', '/storage/v1/object/system/kept.txt', tenant.name)
  const form = new FormData()
  form.set('name', 'one')
  form.set('wasm', new Blob([command()]), 'one.wasm')
  await send(tenant, 'POST', '/functions/v1/deploy', form)
}

async function checkServes(t: Test, tenant: Tenant, when: string): Promise<void> {
  t.equal(await send(tenant, 'GET', '/storage/v1/object/system/kept.txt'), tenant.name, `${when}: the file`)
  await send(tenant, 'POST', '/functions/v1/invoke/one')
  tenant.invocations++
}

/** Requests the tenant's file again and again, and collects the failures, until `end` is called. */
function probe(tenant: Tenant) {
  let isOver = false
  const failures: { at: number; message: string }[] = []
  const loop = (async () => {
    while (!isOver) {
      const at = performance.now()
      await send(tenant, 'GET', '/storage/v1/object/system/kept.txt').catch((error: unknown) =>
        failures.push({ at, message: String(error) }),
      )
      await pause(5)
    }
  })()
  return {
    failures,
    async end() {
      isOver = true
      await loop
    },
  }
}

/** Asserts that the usage, from which invoices are made, has each request and each invocation once. */
async function checkUsage(t: Test, tenant: Tenant, when: string): Promise<void> {
  const sent = [...tenant.statuses.values()].reduce((sum, count) => sum + count, 0)
  let found: unknown
  const read = async () => {
    const { resources } = (await controlCall(installation, 'GET', `/v1/tenants/${tenant.id}/usage`)) as {
      resources: { api_requests: { count: number; rejected: number }; functions: { invocations: number } }
    }
    const { api_requests: requests, functions } = resources
    found = { requests: requests.count + requests.rejected, invocations: functions.invocations }
    return requests.count + requests.rejected >= sent && functions.invocations >= tenant.invocations
  }
  await until(read, `${when}: the usage of ${tenant.name}`)
  t.same(found, { requests: sent, invocations: tenant.invocations }, `${when}: ${tenant.name}`)
}

t.test('Runtimes that share the tenants', { timeout: 300_000 }, async (t) => {
  const restart = async (runtimes: number) => {
    const { data } = installation
    t.equal(await installation.stop(), 0)
    installation = await startInstallation({ dataDirectory: data, runtimes })
    t.equal((await installation.runtimes()).length, runtimes)
  }
  installation = await startInstallation({ runtimes: 2 })
  t.teardown(() => removeInstallation(installation))
  const tenants: Tenant[] = []
  for (let n = 0; n < 4 || new Set(tenants.map(({ id }) => runtimeOf(id, 2))).size < 2; n++)
    tenants.push(await createTenant(`shared-${n}`))
  for (const tenant of tenants) await fill(tenant)

  await t.test('Each tenant is known to its runtime only', async (t) => {
    const stored = async (file: string) => {
      const text = await readFile(join(installation.data, 'runtime', file), 'utf8').catch(() => '')
      return text.split('\n').map((line) => (line === '' ? '' : (JSON.parse(line) as { tenant_id: string }).tenant_id))
    }
    for (const [number, file] of ['manifests.ndjson', 'manifests-1.ndjson'].entries()) {
      const own = tenants.filter(({ id }) => runtimeOf(id, 2) === number).map(({ id }) => id)
      await until(async () => (await stored(file)).length === own.length, `the manifests of runtime ${number}`)
      t.same((await stored(file)).sort(), own.sort())
    }
  })

  await t.test('A killed runtime interrupts its own tenants only, and they are served again', async (t) => {
    const probes = tenants.map((tenant) => ({ number: runtimeOf(tenant.id, 2), ...probe(tenant) }))
    const endProbes = () => Promise.all(probes.map(({ end }) => end()))
    t.teardown(endProbes)
    for (let kill = 0; kill < kills; kill++) {
      const number = kill % 2
      const from = performance.now()
      for (const { failures } of probes) failures.length = 0
      const killed = await installation.pid(`runtime-${number}`)
      process.kill(killed, 'SIGKILL')
      await until(async () => (await installation.pid(`runtime-${number}`)) !== killed, 'the next process')
      await Promise.all(
        tenants
          .filter(({ id }) => runtimeOf(id, 2) === number)
          .map((tenant) =>
            until(() =>
              send(tenant, 'GET', '/storage/v1/object/system/kept.txt').then(
                () => true,
                () => false,
              ),
            ),
          ),
      )
      t.comment(`runtime ${number}: its tenants are served again after ${(performance.now() - from).toFixed(0)} ms`)
      for (const { failures } of probes.filter((probed) => probed.number !== number))
        t.same(failures, [], "no request to the other runtime's tenants failed")
    }
    await endProbes()
    for (const tenant of tenants) await checkServes(t, tenant, 'after the kills')
  })

  await t.test('Usage has every request and invocation once', async (t) => {
    for (const tenant of tenants) await checkUsage(t, tenant, 'after the kills')
  })

  for (const runtimes of [1, 3])
    await t.test(
      `After a restart with ${runtimes} runtimes, all tenants are served, and no usage is lost`,
      async (t) => {
        await restart(runtimes)
        for (const tenant of tenants) await checkServes(t, tenant, `${runtimes} runtimes`)
        for (const tenant of tenants) await checkUsage(t, tenant, `${runtimes} runtimes`)
        const late = await createTenant(`late-${runtimes}`)
        await fill(late)
        await checkServes(t, late, `${runtimes} runtimes`)
        tenants.push(late)
      },
    )
})
