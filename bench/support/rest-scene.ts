// The scene of the REST interface's benchmark: an installation with a tenant whose users own a hundred thousand rows,
// and the bare service on the same table.
import { chmod, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { internalTokenHeader, tenantHeader } from '@tenantry/contract'
import pg from 'pg'
import { serviceIdentity } from '#local/process/unprivileged.ts'
import { startInstallation, type Installation } from '#test/support/installation.ts'
import { startChild } from './child.ts'
import { createTenant, readRegion, signToken, type InstalledTenant } from './installed.ts'
import { sendJson } from './send-json.ts'
import type { Location } from './transfer.ts'

export const rowCount = 100_000
export const ownerCount = 1_000
/** The number of owners that are signed in. The runtime verifies each one's token once a second. */
const signedInOwners = 100

export interface User {
  id: string
  token: string
  /** IDs of the user's rows at the beginning. */
  rows: string[]
}

export interface RestScene {
  /** The tenant that owns the rows. */
  tenant: InstalledTenant
  /** The owners that are signed in. */
  users: readonly User[]
  installation: Installation
  /** Returns the location of a tenant's path at the runtime. */
  atRuntime(tenant: InstalledTenant, token: string, path: string): Location
  /** @throws Error for any other status */
  request(
    tenant: InstalledTenant,
    token: string,
    method: string,
    path: string,
    status: number,
    body?: unknown,
  ): Promise<unknown>
  /** Starts the bare service, which runs until `stop`. */
  startBare(connections: number): Promise<{ port: number; stop(): Promise<void> }>
  /** Opens a session of the superuser in the tenant's schema. */
  session(): Promise<pg.Client>
  /** Waits for a checkpoint, which a restart would wait for. */
  settle(): Promise<void>
  /**
   * Starts a new runtime process with empty caches.
   * @returns its process ID
   */
  restart(): Promise<number>
  stop(): Promise<void>
}

export const todos = {
  name: 'todos',
  fields: [
    { name: 'id', type: 'uuid', primary: true },
    { name: 'owner_id', type: 'string' },
    { name: 'title', type: 'string', required: true },
    { name: 'done', type: 'boolean' },
    { name: 'rank', type: 'number' },
    { name: 'created_at', type: 'datetime' },
  ],
  rls_policy: { type: 'ownership', owner_field: 'owner_id' },
}

export async function openScene(directory: string): Promise<RestScene> {
  const data = join(directory, 'data')
  // The bare service runs as the services' user.
  await chmod(directory, 0o711)
  let installation = await startInstallation({ dataDirectory: data, runtimes: 1 })
  let region = await readRegion(data)
  const internal = (await readFile(join(data, 'secrets', 'internal-token'), 'utf8')).trim()
  const tenant = await createTenant(installation, 'acme', 'Enterprise')
  const session = async () => {
    const client = new pg.Client({ connectionString: region.homes(tenant.database) })
    await client.connect()
    await client.query(`set search_path = ${tenant.id}`)
    return client
  }
  const scene: RestScene = {
    tenant,
    users: [],
    get installation() {
      return installation
    },
    atRuntime: ({ id }, token, path) => ({
      port: region.runtimePort,
      path,
      headers: { authorization: `Bearer ${token}`, [internalTokenHeader]: internal, [tenantHeader]: id },
    }),
    request: (tenant, token, method, path, status, body) =>
      sendJson(scene.atRuntime(tenant, token, path), method, status, body),
    async startBare(connections) {
      const manifest = await manifestOf(data, tenant.id)
      const environment = {
        RLS_URL: manifest.home.url,
        PLAIN_URL: region.homes(tenant.database),
        TENANT_ID: tenant.id,
        JWT_SECRET: tenant.jwtSecret,
      }
      const file = new URL('./bare-rest.ts', import.meta.url).pathname
      // Postgres accepts the runtime's login only from the services' user.
      const bare = await startChild(file, [String(connections)], environment, await serviceIdentity())
      return { port: Number(bare.firstOutput['port']), stop: () => bare.stop() }
    },
    session,
    async settle() {
      const client = await session()
      try {
        await client.query('checkpoint')
      } finally {
        await client.end()
      }
    },
    async restart() {
      await installation.stop()
      installation = await startInstallation({ dataDirectory: data, runtimes: 1 })
      region = await readRegion(data)
      await untilServed(scene)
      return installation.pid('runtime-0')
    },
    stop: async () => {
      await installation.stop()
    },
  }
  await untilServed(scene)
  await scene.request(tenant, tenant.secretKey, 'POST', '/rest/v1/schemas', 201, todos)
  await scene.request(tenant, tenant.secretKey, 'POST', '/admin/reload-schemas', 200)
  const client = await session()
  try {
    scene.users = await fillTodos(client, tenant.jwtSecret)
  } finally {
    await client.end()
  }
  return scene
}

/** Reads the tenant's manifest. Only the runtime receives its own login, which it stores with its data. */
async function manifestOf(data: string, tenantId: string): Promise<{ home: { url: string } }> {
  const deadline = performance.now() + 10_000
  for (;;) {
    const text = await readFile(join(data, 'runtime', 'manifests.ndjson'), 'utf8').catch(() => '')
    const line = text.split('\n').find((line) => line.includes(`"${tenantId}"`))
    if (line !== undefined) return JSON.parse(line) as { home: { url: string } }
    if (performance.now() > deadline) throw new Error('The runtime has not stored its manifests within 10 s')
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}

/**
 * Fills the empty table `todos`.
 * @param client a session of the superuser in the tenant's schema
 * @returns the signed-in owners
 */
export async function fillTodos(client: pg.Client, jwtSecret: string): Promise<User[]> {
  await client.query(
    `insert into todos (owner_id, title, done, rank, created_at)
     select 'user-' || n % $1::int, 'todo number ' || n, n % 3 = 0, (n * 7919) % 10007, timestamptz '2026-01-01' + n * interval '1 minute'
     from generate_series(1, $2::int) n`,
    [ownerCount, rowCount],
  )
  await client.query('vacuum analyze todos')
  await client.query('checkpoint')
  const { rows } = await client.query<{ owner: string; ids: string[] }>(
    'select owner_id as owner, array_agg(id::text) as ids from todos group by 1 order by 1 limit $1',
    [signedInOwners],
  )
  return rows.map(({ owner, ids }) => ({ id: owner, token: signToken(jwtSecret, owner), rows: ids }))
}

async function untilServed(scene: RestScene): Promise<void> {
  const deadline = performance.now() + 20_000
  for (;;) {
    try {
      await scene.request(scene.tenant, scene.tenant.secretKey, 'GET', '/storage/v1/bucket', 200)
      return
    } catch (cause) {
      if (performance.now() > deadline) throw new Error('The tenant was not served within 20 s', { cause })
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
  }
}
