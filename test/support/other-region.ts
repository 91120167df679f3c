// A second region of an installation of `npm start`: a Postgres and a runtime that tenants share, behind the same gateway.
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { internalPaths } from '@tenantry/contract'
import type { Test } from 'tap'
import type { Installation } from './installation.ts'
import { startService, type Platform } from './platform.ts'
import { freePort, query, startPostgres } from './postgres.ts'
import { until } from './until.ts'

/** The ID of the region. */
export const otherRegion = 'other'

interface OtherRegionOptions {
  /** More variables of its runtime. */
  environment?: Record<string, string>
  /** Opens the port through which control plane and runtime reach its Postgres; by default, that of Postgres itself. */
  linkToPostgres?: (port: number) => Promise<number>
}

/** Starts a region in addition to the one of the installation. */
export async function startOtherRegion(
  t: Pick<Test, 'teardown'>,
  { installation, call }: { installation: Installation } & Pick<Platform, 'call'>,
  { environment = { TENANTRY_REGION: otherRegion }, linkToPostgres }: OtherRegionOptions = {},
) {
  const { data, controlUrl } = installation
  const postgres = await startPostgres({ wal_level: 'logical', max_slot_wal_keep_size: '1GB' })
  t.teardown(() => postgres.stop())
  const [directory, port] = await Promise.all([mkdtemp(join(tmpdir(), 'tenantry-region-')), freePort()])
  const postgresUrl = new URL(postgres.url('postgres'))
  postgresUrl.port = String((await linkToPostgres?.(postgres.port)) ?? postgres.port)
  const runtimeUrl = `http://127.0.0.1:${port}`

  const file = join(data, 'regions.json')
  const [local] = JSON.parse(await readFile(file, 'utf8')) as Record<string, unknown>[]
  const { domain, gateway_url, gateway_internal_urls, database_host } = local ?? {}
  const region = {
    ...{ id: otherRegion, engine: 'process', domain, gateway_url, gateway_internal_urls, database_host },
    postgres_url: postgresUrl.href,
    runtime_urls: [runtimeUrl],
  }
  await writeFile(file, JSON.stringify([local, region]))
  process.kill(await installation.pid('control-plane'), 'SIGKILL')
  const regions = async () => JSON.stringify((await call('GET', '/v1/regions').catch(() => ({ body: {} }))).body)
  await until(async () => (await regions()).includes(`"${otherRegion}"`), 'the region')

  const runtime = startService('tenant-runtime/src/main.ts', [], {
    TENANTRY_PORT: String(port),
    TENANTRY_CONTROL_URL: controlUrl,
    TENANTRY_DATA: directory,
    TENANTRY_INTERNAL_TOKEN_FILE: join(data, 'secrets/internal-token'),
    TENANTRY_LOG_LEVEL: 'warn',
    ...environment,
  })
  t.teardown(async () => {
    runtime.process.kill('SIGKILL')
    await runtime.exited
    await rm(directory, { recursive: true, force: true })
  })
  await until(
    () =>
      fetch(`${runtimeUrl}${internalPaths.live}`).then(
        ({ ok }) => ok,
        () => false,
      ),
    'the runtime',
  )
  return { postgres, files: join(directory, 'blobs') }
}
type OtherRegion = Awaited<ReturnType<typeof startOtherRegion>>

/** Returns what is left of a tenant's home in the region. */
export async function remainsIn({ postgres }: OtherRegion, { id }: { id: string }): Promise<string[]> {
  const hex = id.slice(2)
  const server = postgres.url('postgres')
  const found = [
    ...(await query(server, 'select slot_name as name from pg_replication_slots')),
    ...(await query(server, `select rolname as name from pg_roles where rolname like '%${hex}%'`)),
  ]
  for (const { name } of await query(
    server,
    "select datname as name from pg_database where datname ~ '^tenantry_homes_'",
  )) {
    const url = postgres.url(String(name))
    found.push(...(await query(url, 'select pubname as name from pg_publication')))
    found.push(...(await query(url, `select nspname as name from pg_namespace where nspname like '%${hex}%'`)))
  }
  return found.map(({ name }) => String(name))
}
