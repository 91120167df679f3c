// A tenant whose files outlive the runtimes that serve them: its home in a real Postgres, its directory, its manifest,
// and a sweeper that drops unfinished work at once.
import { createHash, randomBytes } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { OutgoingHttpHeaders } from 'node:http'
import type { Test } from 'tap'
import { internalTokenHeader, tenantHeader, type Limits, type TenantManifest } from '@tenantry/contract'
import { Connections, defaultConnectionLimits } from '#tenant-runtime/database/connections.ts'
import { ScopedDatabase } from '#tenant-runtime/database/scoped-database.ts'
import { LocalBackend } from '#tenant-runtime/storage/backend/local.ts'
import { Collector } from '#tenant-runtime/storage/collector.ts'
import type { Tenant } from '#tenant-runtime/tenancy/tenant.ts'
import { createHome, type TestHome } from '#test/support/home.ts'
import { query, startPostgres, type TestPostgres } from '#test/support/postgres.ts'
import { send, roomy, type ApiResponse, type RequestOptions } from '#test/support/runtime.ts'

export const internalToken = randomBytes(24).toString('hex')

/** Sends one request to the runtime that currently serves the tenant, as the service role. */
export type Request = (
  method: string,
  path: string,
  body?: RequestOptions['body'],
  headers?: OutgoingHttpHeaders,
) => Promise<ApiResponse>

export interface Scene {
  postgres: TestPostgres
  home: TestHome
  manifest: TenantManifest
  /** The tenant as the test's own process sees it, whatever happens to the runtimes. */
  tenant: Tenant
  /** The data directory of the runtimes. */
  data: string
  /** The directory of the files. */
  blobs: string
  /** Drops all unfinished work at once. Use it only while there are no writers. */
  collector: Collector
  /** Queries the tenant's tables without row-level security. */
  rows(sql: string): Promise<Record<string, unknown>[]>
  /** Creates a function that calls the runtime that listens on `port`. */
  createRequest(port: number): Request
}

export interface SceneOptions {
  /** The data directory of the runtimes; a new one by default. */
  data?: string
  limits?: Partial<Limits>
}

export async function openScene(t: Test, { data: given, limits = {} }: SceneOptions = {}): Promise<Scene> {
  const postgres = await startPostgres()
  const data = given ?? (await mkdtemp(join(tmpdir(), 'tenantry-files-')))
  const connections = new Connections(defaultConnectionLimits)
  t.teardown(async () => {
    await connections.close()
    await postgres.stop()
    if (given === undefined) await rm(data, { recursive: true, force: true })
  })
  const home = await createHome(postgres)
  const key = `sb_secret_${randomBytes(24).toString('base64url')}`
  const manifest: TenantManifest = {
    tenant_id: home.tenantId,
    name: 'acme',
    generation: 1,
    home: { url: home.url, ddl_url: home.ddl_url, schema: home.schema },
    keys: [{ kind: 'secret', sha256: createHash('sha256').update(key).digest('hex') }],
    jwt_secrets: [randomBytes(32).toString('hex')],
    signing_secret: randomBytes(32).toString('hex'),
    limits: { ...roomy, ...limits },
  }
  const tenant: Tenant = {
    id: home.tenantId,
    name: manifest.name,
    generation: 1,
    limits: manifest.limits,
    manifest,
    database: new ScopedDatabase(connections, { tenantId: home.tenantId, url: home.url, ddlUrl: home.ddl_url }),
  }
  const blobs = join(data, 'blobs')
  const superuser = `${postgres.url('homes')}?options=${encodeURIComponent(`-c search_path=${home.schema}`)}`
  const headers = {
    [internalTokenHeader]: internalToken,
    [tenantHeader]: home.tenantId,
    authorization: `Bearer ${key}`,
  }
  return {
    postgres,
    home,
    manifest,
    tenant,
    data,
    blobs,
    collector: new Collector({
      backend: new LocalBackend(blobs),
      tenants: () => [tenant],
      failpoint: () => undefined,
      now: Date.now,
      onError: (error) => t.fail(error.message),
      abandonedMilliseconds: 0,
    }),
    rows: (sql) => query(superuser, sql),
    createRequest:
      (port) =>
      (method, path, body, more = {}) =>
        send(port, method, path, { ...headers, ...more }, body),
  }
}
