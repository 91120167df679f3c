// An installation as `npm start` makes it, whose tenants move into services of their own.
import { readdir, readFile } from 'node:fs/promises'
import { setPriority } from 'node:os'
import { join } from 'node:path'
import type { Test } from 'tap'
import { socketPorts, socketUrl } from '#local/process/postgres-socket.ts'
import { removeInstallation, startInstallation, type Installation } from '#test/support/installation.ts'
import { operatorCalls, tenantCalls } from '#test/support/platform-calls.ts'
import { query } from '#test/support/postgres.ts'
import type { Owner, ServedPlatform } from './platform.ts'

/** The priority ("nice") of the process in which the users run. */
const userPriority = 10

export interface InstalledPlatform extends ServedPlatform {
  installation: Installation
}

/** Starts an installation in which no home stays after a move, unless the environment lets it stay. */
export async function startInstalled(t: Test, environment: Record<string, string> = {}): Promise<InstalledPlatform> {
  const installation = await startInstallation({
    runtimes: 2,
    // A busy machine may need longer than the default for what a hold does.
    environment: {
      TENANTRY_MOVE_HOLD_MILLISECONDS: '30000',
      TENANTRY_MOVE_REVERSE_SECONDS: '0',
      ...environment,
    },
  })
  t.teardown(() => removeInstallation(installation))
  // The users take the time that the platform leaves: otherwise a move takes minutes on a small machine.
  setPriority(userPriority)
  const { controlUrl, gatewayUrl, platformKey } = installation
  return {
    installation,
    gatewayUrl,
    call: operatorCalls(controlUrl, platformKey),
    tenantCall: tenantCalls([gatewayUrl]),
  }
}

/** Returns what is left of a tenant's home and files where tenants share a Postgres and runtimes. */
export async function sharedRemains({ installation }: InstalledPlatform, { id }: Owner): Promise<string[]> {
  const hex = id.slice(2)
  const found: string[] = []
  const url = await sharedServer(installation)
  for (const sql of [
    'select slot_name as name from pg_replication_slots',
    `select rolname as name from pg_roles where rolname like '%${hex}%'`,
  ])
    found.push(...(await query(url('postgres'), sql)).map(({ name }) => String(name)))
  for (const sql of [
    'select pubname as name from pg_publication',
    `select nspname as name from pg_namespace where nspname like '%${hex}%'`,
  ])
    found.push(...(await query(url('tenantry_homes_1'), sql)).map(({ name }) => String(name)))
  const files = await readdir(join(installation.data, 'runtime', 'blobs', id)).catch(() => [])
  return [...found, ...files]
}

/** Returns what exists of a tenant's own services. */
export async function ownServices({ installation }: InstalledPlatform, { id }: Owner): Promise<string[]> {
  const folders = ['networks', 'volumes', 'programs'].map((name) => join(installation.data, 'containers', name))
  const names = await Promise.all(folders.map((folder) => readdir(folder).catch(() => [])))
  return names.flat().filter((name) => name.includes(id))
}

/** Whether a tenant's SQL login may log in to the Postgres that tenants share; undefined if it does not exist there. */
export async function isSharedLoginOpen({ installation }: InstalledPlatform, { id }: Owner): Promise<unknown> {
  const url = await sharedServer(installation)
  const [login] = await query(url('postgres'), 'select rolcanlogin as open from pg_roles where rolname = $1', [
    `${id}_admin`,
  ])
  return login?.['open']
}

/** Returns the superuser's URLs of the databases that tenants share. */
async function sharedServer({ data }: Installation): Promise<(database: string) => string> {
  const password = (await readFile(join(data, 'secrets/postgres-password'), 'utf8')).trim()
  return (database) => socketUrl({ sockets: join(data, 'sockets'), port: socketPorts.homes, password }, database)
}
