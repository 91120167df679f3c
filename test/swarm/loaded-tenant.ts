// A tenant on three hosts, with a client that writes rows and one that reads and uploads files, which both continue during every fault.
import type { Test } from 'tap'
import { until } from '#test/support/docker.ts'
import type { SwarmPlatform } from '#test/support/swarm-platform.ts'
import { startHttpClient, type ReadPause } from '../clusters/http-client.ts'
import { lostNothing, startWriter } from '../clusters/writer.ts'
import { openBalancer } from './balancer.ts'

const secondsToReady = 600

export interface LoadedTenant {
  id: string
  writer: ReturnType<typeof startWriter>
  /** Returns the maximum pause of reads since the last call. */
  takeMaxReadPause(): ReadPause
  /** Returns how many HTTP requests were sent, and how many of them got a 503. */
  counts(): { reads: number; retryableReads: number; uploads: number; retryableUploads: number }
  /** Waits until the API reports the tenant as ready. */
  untilReady(): Promise<Record<string, unknown>>
  /**
   * Stops both clients, and checks that nothing was lost, that each response was a success or left open what happened, and that the usage
   * contains each request that succeeded and no more than were sent.
   */
  finish(t: Test): Promise<void>
}

type Platform = Pick<SwarmPlatform, 'call' | 'gatewayPort' | 'lab' | 'postgresPort' | 'until'>

/** A tenant without clients. */
export interface CreatedTenant {
  id: string
  name: string
  databaseUrl: string
  secretKey: string
  untilReady: LoadedTenant['untilReady']
}

/**
 * Creates a tenant, and waits until it is ready.
 * @param isSmall whether its services have the sizes of the plan Free, so that many tenants have room
 */
export async function createTenant(
  t: Test,
  platform: Pick<Platform, 'call' | 'until'>,
  name: string,
  isolation: 'schema-per-tenant' | 'cluster-per-tenant',
  isSmall = false,
): Promise<CreatedTenant> {
  const plan = isSmall ? 'Free' : 'Enterprise'
  const created = await platform.call('POST', '/v1/tenants', { name, plan, region: 'local', isolation })
  t.match(created, { status: 201, body: { isolation } })
  const id = String(created.body['tenant_id'])
  const untilReady = () => platform.until(id, ({ status }) => status === 'ready', secondsToReady)
  const { resources } = await untilReady()
  if (isSmall) {
    const change = { plan: 'Enterprise', ...(resources === null ? {} : { resources }) }
    t.match(await platform.call('PATCH', `/v1/tenants/${id}`, change), { status: 200 })
    await untilReady()
  }
  const secretKey = String((created.body['keys'] as Record<string, unknown>)['secret_key'])
  return { id, name, databaseUrl: String(created.body['database_url']), secretKey, untilReady }
}

/** Creates a tenant and starts its clients. */
export async function startLoadedTenant(
  t: Test,
  platform: Platform,
  name: string,
  isolation: 'schema-per-tenant' | 'cluster-per-tenant',
): Promise<LoadedTenant> {
  return startClients(t, platform, await createTenant(t, platform, name, isolation))
}

/**
 * Starts the clients of a tenant, which reach the first gateway that accepts their connections.
 * @param waitMs milliseconds after each row and each request; undefined: 20 and 50
 */
export async function startClients(
  t: Test,
  platform: Platform,
  { id, name, databaseUrl, secretKey, untilReady }: CreatedTenant,
  waitMs?: number,
): Promise<LoadedTenant> {
  const addresses = platform.lab.hosts.map(({ address }) => address)
  const [sql, http] = await Promise.all([
    openBalancer(t, addresses, platform.postgresPort),
    openBalancer(t, addresses, platform.gatewayPort),
  ])
  const url = new URL(databaseUrl)
  url.host = `127.0.0.1:${sql}`
  const writer = startWriter(url.href, waitMs)
  t.teardown(() => writer.stop())
  const send = (method: string, path: string, body?: string) =>
    fetch(`http://127.0.0.1:${http}/t/${name}${path}`, {
      method,
      headers: {
        authorization: `Bearer ${secretKey}`,
        'content-type': path.endsWith('bucket') ? 'application/json' : 'text/plain',
      },
      ...(body === undefined ? {} : { body }),
    })
  const client = await startHttpClient(t, send, waitMs)
  await writer.acknowledged(5)
  return {
    id,
    writer,
    takeMaxReadPause: client.takeMaxReadPause,
    counts: client.counts,
    untilReady,
    async finish(t) {
      lostNothing(t, await writer.stop())
      const { wrong, requests, ...counts } = await client.stop()
      t.comment(JSON.stringify(counts))
      // A gateway or a runtime has ended with its host, or the database or the bucket did not respond. Whether the request was carried
      // out is unknown.
      const cut = /^(GET: 0|POST: 0|POST: 502 .*BAD_GATEWAY|POST: 504 .*RUNTIME_TIMEOUT)/
      t.same(
        wrong.filter((text) => !cut.test(text)),
        [],
        'each other response was a success or asked for a later attempt, and each acknowledged file is there',
      )
      // A gateway that was killed sends its earlier counts when it starts again.
      const inUsage = async () => {
        const { body } = await platform.call('GET', `/v1/tenants/${id}/usage?resource=api_requests`)
        return (body['resources'] as { api_requests: { count: number } }).api_requests.count
      }
      const { succeeded, others } = requests
      await until(async () => ((await inUsage()) >= succeeded ? true : undefined), 60).catch(() => undefined)
      const count = await inUsage()
      const isExact = succeeded <= count && count <= succeeded + others
      t.ok(isExact, `${succeeded} requests succeeded, ${others} did not, and ${count} are in the usage`)
    },
  }
}
