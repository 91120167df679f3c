// Actions of operators and checks of what the platform reports, for tests with faults of the engine or its host.
import type { Test } from 'tap'
import type { DockerPlatform } from '#test/support/docker-platform.ts'
import { docker, type Tenant } from './docker-client.ts'

interface Condition {
  status: string
  reason: string
  message: string
}

export const until = async (what: string, holds: () => Promise<boolean>): Promise<void> => {
  const deadline = Date.now() + 60_000
  while (!(await holds())) {
    if (Date.now() > deadline) throw new Error(`not in 60 s: ${what}`)
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
}

/** Returns the actions and checks of a test on a platform. */
export function actionsOn(platform: DockerPlatform) {
  const request = async (name: string, plan: string, wait: number): Promise<Tenant & { status: string }> => {
    const { status, body } = await platform.call(
      'POST',
      '/v1/tenants',
      { name, plan, region: 'local' },
      { prefer: `wait=${wait}` },
    )
    if (status !== 201) throw new Error(`${name}: ${status} ${JSON.stringify(body)}`)
    return {
      id: String(body['tenant_id']),
      name,
      key: (body['keys'] as { secret_key: string }).secret_key,
      status: String(body['status']),
    }
  }
  const create = async (name: string, plan = 'Pro'): Promise<Tenant> => {
    const tenant = await request(name, plan, 60)
    if (tenant.status !== 'ready') throw new Error(`${name} is ${tenant.status}`)
    return tenant
  }
  /** Uploads a file for a tenant. @returns `served`, or the status and the body of an error */
  const use = async ({ name, key }: Tenant): Promise<string> => {
    const response = await platform.tenantCall(name, 'POST', '/storage/v1/object/system/probe.txt', {
      key,
      body: 'x',
      type: 'text/plain',
    })
    const text = await response.text()
    return response.status === 200 ? 'served' : `${response.status} ${text}`
  }
  /** Waits until the tenant reports a reason, and asserts that its conditions and its operation have the message. */
  const untilReported = async (t: Test, { id }: Tenant, reason: string, words: RegExp): Promise<void> => {
    const body = await platform.until(id, ({ conditions }) =>
      (conditions as Condition[]).some((condition) => condition.status === 'False' && condition.reason === reason),
    )
    t.match(body['reason'], words, 'the reason')
    t.match(
      (body['conditions'] as Condition[]).find((condition) => condition.reason === reason)?.message,
      words,
      'the condition',
    )
    const { operations } = (await platform.call('GET', `/v1/operations?tenant_id=${id}&limit=100`)).body as {
      operations: { error: string | null }[]
    }
    t.match(operations.at(-1)?.error, words, 'the operation')
  }
  const isWell = async (t: Test, tenant: Tenant): Promise<void> => {
    const body = await platform.until(tenant.id, ({ status }) => status === 'ready')
    t.match(body, { reason: null }, `${tenant.name} is well`)
    t.equal(await use(tenant), 'served', `${tenant.name} is served`)
  }
  const regionCondition = async (): Promise<Condition | undefined> => {
    const { regions } = (await platform.call('GET', '/v1/regions')).body as { regions: { conditions: Condition[] }[] }
    return regions[0]?.conditions[0]
  }
  const change = (tenant: Tenant, body: object, wait = 30) =>
    platform.call('PATCH', `/v1/tenants/${tenant.id}`, body, { prefer: `wait=${wait}` })
  const gateway = () =>
    docker(
      'ps',
      '-q',
      '--filter',
      `label=tenantry.installation=${platform.installation}`,
      '--filter',
      'label=tenantry.service=gateway',
    )
  /** Returns the names of all objects of the installation on the engine. */
  const everything = async (): Promise<string[]> => {
    const { containers, networks, volumes } = await platform.host.observe(
      { installation: platform.installation },
      AbortSignal.timeout(30_000),
    )
    return [...containers, ...networks, ...volumes].map(({ name }) => name).sort()
  }
  return { request, create, use, untilReported, isWell, regionCondition, change, gateway, everything }
}
