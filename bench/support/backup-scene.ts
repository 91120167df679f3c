// The scenes of the benchmark of backups: a platform of one isolation model, and a tenant of it with files or with rows.
import { join } from 'node:path'
import pg from 'pg'
import { startDockerPlatform } from '#test/support/docker-platform.ts'
import { startInstallation } from '#test/support/installation.ts'
import type { Location } from './transfer.ts'
import { upload } from './transfer.ts'

export const isolations = ['shared', 'dedicated'] as const
export type Isolation = (typeof isolations)[number]
export const contents = ['files', 'rows'] as const
export type Content = (typeof contents)[number]

/** A tenant whose backups are measured. */
export interface FilledTenant {
  id: string
  /** The bytes of its files, or of the text in its rows. */
  bytes: number
  /** Its SQL login at the gateway. */
  databaseUrl: string
  atGateway(path: string): Location
}

export interface BackupScene {
  /** Creates a tenant with this content. */
  create(content: Content, megabytes: number): Promise<FilledTenant>
  /**
   * Starts an operation by a POST, and waits for its end.
   * @param onState called with the operation as it is, every 20 ms
   * @returns the response's ID, and the seconds until the end
   */
  perform(
    path: string,
    body?: object,
    onState?: (operation: Operation) => void,
  ): Promise<{ id: string; seconds: number }>
  remove(backupId: string): Promise<void>
  /** Switches the archive of a dedicated tenant on or off, and waits until it is. */
  archive(tenantId: string, days: number | null): Promise<void>
  stop(): Promise<void>
}

interface Platform {
  controlUrl: string
  gatewayUrl: string
  platformKey: string
  stop(): Promise<unknown>
}

interface Created {
  tenant_id: string
  database_url: string
  keys: { secret_key: string }
}

const fileBytes = 4_000_000
const rowBytes = 1_024
const rowsPerStatement = 10_000
const pollMilliseconds = 20

/** Starts a platform. @param directory where its data and backups are */
export async function openScene(isolation: Isolation, directory: string): Promise<BackupScene> {
  const platform: Platform =
    isolation === 'shared'
      ? await startInstallation({ dataDirectory: join(directory, 'data'), runtimes: 1 })
      : await startDockerPlatform({ environment: { TENANTRY_BACKUPS: join(directory, 'backups') } })
  /** @param wait the seconds for which the response waits for the end of an operation */
  const call = async (method: string, path: string, body?: object, wait = 60) => {
    const response = await fetch(`${platform.controlUrl}${path}`, {
      method,
      headers: {
        authorization: `Bearer ${platform.platformKey}`,
        prefer: `wait=${wait}`,
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })
    const text = await response.text()
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`)
    return JSON.parse(text) as unknown
  }
  return {
    async create(content, megabytes) {
      const name = `${isolation}-${content}`
      const model = isolation === 'shared' ? {} : { isolation: 'database-per-tenant' }
      const created = (await call('POST', '/v1/tenants', {
        name,
        plan: 'Enterprise',
        region: 'local',
        ...model,
      })) as Created
      const atGateway = (path: string): Location => ({
        port: Number(new URL(platform.gatewayUrl).port),
        path: `/t/${name}${path}`,
        headers: { authorization: `Bearer ${created.keys.secret_key}` },
      })
      await post(atGateway('/storage/v1/bucket'), { name: 'files' })
      const fill = content === 'files' ? fillFiles(atGateway, megabytes) : fillRows(created.database_url, megabytes)
      return { id: created.tenant_id, bytes: await fill, databaseUrl: created.database_url, atGateway }
    },
    async perform(path, body, onState = () => undefined) {
      const begin = performance.now()
      const started = (await call('POST', path, body, 0)) as { id: string; operation: { id: string } }
      for (;;) {
        const operation = (await call('GET', `/v1/operations/${started.operation.id}`)) as Operation
        onState(operation)
        if (operation.state === 'succeeded') return { id: started.id, seconds: (performance.now() - begin) / 1_000 }
        if (operation.state === 'failed') throw new Error(`${path}: ${JSON.stringify(operation)}`)
        await new Promise((resolve) => setTimeout(resolve, pollMilliseconds))
      }
    },
    remove: async (backupId) => void (await call('DELETE', `/v1/backups/${backupId}`)),
    async archive(tenantId, days) {
      await call('PATCH', `/v1/tenants/${tenantId}`, { archive_days: days })
      await holds(async () => {
        const tenant = (await call('GET', `/v1/tenants/${tenantId}`)) as TenantState
        return tenant.status === 'ready' && tenant.observed_generation === tenant.generation
      })
      await holds(async () => {
        const { earliest } = (await call('GET', `/v1/tenants/${tenantId}/recovery`)) as { earliest: string | null }
        return (earliest !== null) === (days !== null)
      })
    },
    stop: async () => void (await platform.stop()),
  }
}

interface TenantState {
  status: string
  generation: number
  observed_generation: number
}

/** Waits until the condition holds. @throws Error after four minutes */
async function holds(condition: () => Promise<boolean>): Promise<void> {
  for (let waited = 0; waited < 240_000; waited += 250) {
    if (await condition()) return
    await new Promise((resolve) => setTimeout(resolve, 250))
  }
  throw new Error('The archive was not switched in time.')
}

export interface Operation {
  state: string
  step: string | null
  move?: { rows?: number; bytes?: number }
}

export async function post({ port, path, headers }: Location, body: object): Promise<void> {
  const response = await fetch(`http://127.0.0.1:${port}${path}`, {
    method: 'POST',
    headers: { ...headers, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })
  const text = await response.text()
  if (!response.ok) throw new Error(`${path}: ${response.status} ${text}`)
}

async function fillFiles(atGateway: FilledTenant['atGateway'], megabytes: number): Promise<number> {
  const count = Math.ceil((megabytes * 1_000_000) / fileBytes)
  for (let n = 0; n < count; n++) await upload('POST', atGateway(`/storage/v1/object/files/${n}`), fileBytes)
  return count * fileBytes
}

/** Fills a table with text of hexadecimal digits, which compress to about a half. */
async function fillRows(url: string, megabytes: number): Promise<number> {
  const count = Math.ceil((megabytes * 1_000_000) / rowBytes)
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    await client.query('create table payloads (id bigint primary key, body text not null)')
    for (let first = 0; first < count; first += rowsPerStatement)
      await client.query(
        `insert into payloads
         select n, (select string_agg(md5(n || '-' || part), '') from generate_series(1, $1::int) part)
         from generate_series($2::int, $3::int) n`,
        [rowBytes / 32, first, Math.min(count, first + rowsPerStatement) - 1],
      )
  } finally {
    await client.end()
  }
  return count * rowBytes
}
