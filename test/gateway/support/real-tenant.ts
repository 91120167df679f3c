// Tenants behind the Postgres proxy whose database is on a real Postgres, and real clients of them.
import type { Route } from '@tenantry/contract'
import pg from 'pg'
import type { Test } from 'tap'
import { query, type TestPostgres } from '#test/support/postgres.ts'
import { newTenantId, type Setting } from './gateway.ts'
import { addTenant, proxyOf } from './postgres-proxy.ts'

export interface Login extends pg.ClientConfig {
  user: string
  password: string
}

/** Creates a role named like a tenant's admin, on a server that both tenants share only in these tests. */
export async function addRealTenant(
  setting: Setting,
  server: TestPostgres,
  name: string,
): Promise<{ route: Route; login: Login }> {
  const route = await addTenant(setting, name, `127.0.0.1:${server.port}`)
  const login = {
    host: '127.0.0.1',
    port: proxyOf(setting),
    user: `${route.tenant_id}_admin`,
    password: newTenantId(),
    database: 'postgres',
  }
  await query(
    server.url('postgres'),
    `create role ${login.user} login password '${login.password}'; grant all on database postgres to ${login.user}`,
  )
  return { route, login }
}

export async function connected(t: Test, login: pg.ClientConfig): Promise<pg.Client> {
  const client = new pg.Client(login)
  client.on('error', () => undefined)
  t.teardown(() => client.end())
  await client.connect()
  return client
}

/** Resolves when the client ends, also after it lost its connection. */
export function endOf(client: pg.Client): Promise<void> {
  return new Promise((resolve) => client.on('end', () => resolve()))
}
