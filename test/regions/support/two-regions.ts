// An installation of `npm start` with a second region, whose Postgres can be stopped or silenced.
import { setTimeout as sleep } from 'node:timers/promises'
import type { Test } from 'tap'
import { removeInstallation, startInstallation } from '#test/support/installation.ts'
import { otherRegion, startOtherRegion } from '#test/support/other-region.ts'
import { operatorCalls, tenantCalls, type ApiResponse, type OperatorCall } from '#test/support/platform-calls.ts'
import { openTcpLink, type TcpLink } from '#test/support/tcp-link.ts'
import { until } from '#test/support/until.ts'

/** A tenant with its secret key. */
export interface Owner {
  id: string
  name: string
  key: string
}

/** A way in which the Postgres of the second region fails. */
export interface Failure {
  name: string
  begin(): Promise<void>
  end(): Promise<void>
}

/** Changes of the region's tenants are more than the reconciler does at a time in one region. */
const creates = 16
const clientsOfEach = 2
/** The rate of the clients of one tenant is less than that of its plan. */
const pauseMs = 200

export interface TwoRegions {
  gatewayUrl: string
  call: OperatorCall
  /** Creates a tenant and waits until it is ready. @throws Error if it is not */
  create(name: string, region: string): Promise<Owner>
  /** Renames a tenant and waits until it is ready again. @throws Error if it is not */
  rename(owner: Owner, name: string): Promise<Owner>
  /** Sends a request that needs the tenant's database. @returns its status; 0 without a response */
  get(owner: Owner): Promise<number>
  /** Status of a tenant as its operators see it. */
  statusOf(id: string): Promise<unknown>
  /** Waits until all of these tenants are ready. @throws Error after the time */
  untilReady(ids: readonly string[], milliseconds: number): Promise<void>
  /** Renames every other one of the tenants, and creates new ones in the second region. @returns the IDs of the new ones */
  requestChanges(owners: readonly Owner[], prefix: string): Promise<string[]>
  /** Sends requests of several clients of each tenant, until the signal aborts. @param onStatus receives each status */
  sendRequests(owners: readonly Owner[], signal: AbortSignal, onStatus?: (status: number) => void): Promise<void>
  failures: readonly Failure[]
}

/** Starts the installation. @param waitSeconds the time in which creates and changes become ready */
export async function startTwoRegions(t: Pick<Test, 'teardown'>, waitSeconds: number): Promise<TwoRegions> {
  const installation = await startInstallation({ runtimes: 1, gateways: 1 })
  t.teardown(() => removeInstallation(installation))
  const { controlUrl, gatewayUrl, platformKey } = installation
  const call = operatorCalls(controlUrl, platformKey)
  const tenantCall = tenantCalls([gatewayUrl])
  let link: TcpLink | undefined
  const linkToPostgres = async (port: number) => {
    link = await openTcpLink(port)
    return link.port
  }
  const other = await startOtherRegion(t, { installation, call }, { linkToPostgres })
  t.teardown(() => link?.stop())

  const prefer = { prefer: `wait=${waitSeconds}` }
  const ready = ({ status, body }: ApiResponse) => {
    if (body['status'] !== 'ready') throw new Error(`${status} ${JSON.stringify(body)}`)
    return body
  }
  const bodyOf = (name: string, region: string) => ({ name, plan: 'Free', region })
  const get = async ({ name, key }: Owner): Promise<number> => {
    try {
      const response = await tenantCall(name, 'GET', '/storage/v1/bucket', { key })
      await response.text()
      return response.status
    } catch {
      return 0
    }
  }
  const statusOf = async (id: string) => (await call('GET', `/v1/tenants/${id}`)).body['status']
  const client = async (owner: Owner, signal: AbortSignal, onStatus: (status: number) => void) => {
    while (!signal.aborted) {
      onStatus(await get(owner))
      await sleep(pauseMs)
    }
  }

  return {
    gatewayUrl,
    call,
    async create(name, region) {
      const body = ready(await call('POST', '/v1/tenants', bodyOf(name, region), prefer))
      const { secret_key: key } = body['keys'] as { secret_key: string }
      return { id: String(body['tenant_id']), name, key }
    },
    async rename(owner, name) {
      ready(await call('PATCH', `/v1/tenants/${owner.id}`, { name }, prefer))
      return { ...owner, name }
    },
    get,
    statusOf,
    async untilReady(ids, milliseconds) {
      const areReady = async () => (await Promise.all(ids.map(statusOf))).every((status) => status === 'ready')
      await until(areReady, 'the tenants to be ready', milliseconds)
    },
    async requestChanges(owners, prefix) {
      for (const { id } of owners.filter((_, n) => n % 2 === 0))
        await call('PATCH', `/v1/tenants/${id}`, { name: `${prefix}-renamed-${id.slice(2)}` })
      const ids: string[] = []
      for (let n = 0; n < creates; n++) {
        const { status, body } = await call('POST', '/v1/tenants', bodyOf(`${prefix}-${n}`, otherRegion))
        if (status !== 201) throw new Error(`${status} ${JSON.stringify(body)}`)
        ids.push(String(body['tenant_id']))
      }
      return ids
    },
    async sendRequests(owners, signal, onStatus = () => undefined) {
      const clients = owners.flatMap((owner) => Array.from({ length: clientsOfEach }, () => owner))
      await Promise.all(clients.map((owner) => client(owner, signal, onStatus)))
    },
    failures: [
      {
        name: 'stops',
        begin: () => other.postgres.halt(),
        end: () => other.postgres.resume(),
      },
      {
        name: 'is silent',
        begin: () => Promise.resolve(link?.silence()),
        end: () => Promise.resolve(link?.restore()),
      },
    ],
  }
}
