// A tenant whose files outlive the runtimes that serve them: its home in a real Postgres, its directory, the control
// plane's word of it, and a sweeper that gives up at once what nobody works at any more.
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

/** One request to whichever runtime serves the tenant now, as the service role. */
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
  /** As a process of the test's own sees it, whatever happens to the runtimes. */
  tenant: Tenant
  /** Where the runtimes keep their data. */
  data: string
  /** Where the files lie. */
  blobs: string
  /** Gives up whatever was begun and not ended: only for when nobody writes. */
  collector: Collector
  /** What the tenant's tables hold, row-level security aside. */
  rows(sql: string): Promise<Record<string, unknown>[]>
  /** Asks a runtime that listens on `port`. */
  asker(port: number): Request
}

export interface SceneOptions {
  /** A directory for the runtimes' data; a fresh one without. */
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
    asker:
      (port) =>
      (method, path, body, more = {}) =>
        send(port, method, path, { ...headers, ...more }, body),
  }
}
