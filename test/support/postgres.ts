// Starts a real Postgres for one test file on a free port. Its data directory is a copy of a template and is deleted at the end.
import { spawn } from 'node:child_process'
import { createHash, randomInt } from 'node:crypto'
import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, rename, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { once } from 'node:events'
import pg from 'pg'
import { isFree } from '#local/process/ports.ts'
import { initialiseDataDirectory, postgresArguments, postgresBinaries } from '#local/process/postgres-files.ts'
import { asIdentity, setOwner, serviceIdentity } from '#local/process/unprivileged.ts'
import { defaultMaxObjects } from '#control-plane/homes/object-limit.ts'
import { prepareHomesSql } from '#control-plane/homes/prepare-database.ts'
import { migrate, readMigrations } from '#control-plane/platform/migrations.ts'

const password = 'test-only'

export interface TestPostgres {
  port: number
  /** Returns the pid of the server, or of the program that runs it as another user. */
  pid(): number
  /** Returns the superuser's URL of a database on this server. */
  url(database: string): string
  stop(): Promise<void>
  /** Ends the server as a crash does (SIGQUIT, no checkpoint) and starts it again on the same port. */
  crash(): Promise<void>
  /** Stops the server and starts it as a replica that follows no primary. `pg_promote()` makes it a primary again. */
  demote(): Promise<void>
  /** Ends the server as a crash does. */
  halt(): Promise<void>
  /** Starts the server again, as a replica of another one if an address is given. */
  resume(primary?: StandbyOf): Promise<void>
  /** Starts another server with a copy of this one's data, which follows it. Needs `wal_level` `replica`. */
  openStandby(primary: StandbyOf): Promise<TestPostgres>
}

/** The server that a replica follows. */
interface StandbyOf {
  /** Port of the primary, or of a link to it. */
  port: number
  /** Name of the replica for the primary's `synchronous_standby_names`. */
  name: string
}

/** Starts a server that holds the databases `control`, with its tables, and `homes`, prepared for tenants. */
export async function startPostgres(settings: Record<string, string> = {}): Promise<TestPostgres> {
  const identity = await serviceIdentity()
  const template = await templateDirectory()
  const parent = await mkdtemp(join(tmpdir(), 'tenantry-test-'))
  const directory = join(parent, 'postgres')
  await setOwner(parent, identity)
  // `cp -a` preserves the owner; fs.cp does not.
  await execute('cp', ['-a', template, directory])
  const postgres = await serve(parent, settings)
  // The template has one name for all, and an engine distinguishes installations by their names.
  await query(postgres.url('control'), 'update installation set name = gen_random_uuid()')
  return postgres
}

/** Starts a server with the data in `postgres` below a directory. */
async function serve(parent: string, settings: Record<string, string>): Promise<TestPostgres> {
  const binaries = await postgresBinaries()
  const identity = await serviceIdentity()
  const directory = join(parent, 'postgres')
  const port = await freePort()
  const { command, args } = await asIdentity(identity, [binaries.root, parent], {
    command: binaries.postgres,
    args: postgresArguments(directory, port, { fsync: 'off', ...settings }),
  })
  const url = (database: string) => `postgresql://postgres:${password}@127.0.0.1:${port}/${database}`
  const start = async (further: readonly string[] = []) => {
    const server = spawn(command, [...args, ...further], { stdio: 'ignore' })
    await untilResponding(url('postgres'))
    return server
  }
  const follow = async (data: string) => {
    await writeFile(join(data, 'standby.signal'), '')
    await setOwner(join(data, 'standby.signal'), identity)
  }
  let server = await start()
  const end = async (signal: NodeJS.Signals) => {
    if (server.exitCode !== null || server.signalCode !== null) return
    const gone = once(server, 'exit')
    server.kill(signal)
    await gone
  }
  return {
    port,
    pid: () => server.pid ?? 0,
    url,
    async stop() {
      // Without a checkpoint: the data is deleted.
      await end('SIGQUIT')
      await rm(parent, { recursive: true, force: true })
    },
    async crash() {
      await end('SIGQUIT')
      server = await start()
    },
    async demote() {
      await end('SIGINT')
      await follow(directory)
      server = await start()
    },
    halt: () => end('SIGQUIT'),
    async resume(primary) {
      if (primary !== undefined) await follow(directory)
      server = await start(primary === undefined ? [] : ['-c', `primary_conninfo=${connectionTo(primary)}`])
    },
    async openStandby(primary) {
      const parent = await mkdtemp(join(tmpdir(), 'tenantry-test-'))
      await setOwner(parent, identity)
      const copy = join(parent, 'postgres')
      const client = new pg.Client({ connectionString: url('postgres') })
      await client.connect()
      try {
        await client.query("select pg_backup_start('standby', true)")
        await execute('cp', ['-a', directory, copy])
        const { rows } = await client.query<{ labelfile: string }>('select labelfile from pg_backup_stop(false)')
        await writeFile(join(copy, 'backup_label'), rows[0]?.labelfile ?? '')
        await setOwner(join(copy, 'backup_label'), identity)
      } finally {
        await client.end()
      }
      await rm(join(copy, 'postmaster.pid'), { force: true })
      await follow(copy)
      return serve(parent, { ...settings, primary_conninfo: connectionTo(primary) })
    },
  }
}

function connectionTo({ port, name }: StandbyOf): string {
  return `host=127.0.0.1 port=${port} user=postgres password=${password} application_name=${name}`
}

/** Returns the template data directory. The first use creates and caches it, because initdb takes longer than most test files. */
async function templateDirectory(): Promise<string> {
  const binaries = await postgresBinaries()
  const identity = await serviceIdentity()
  const cache = join(tmpdir(), `tenantry-postgres-template-${identity?.uid ?? process.getuid?.() ?? 0}`)
  const migrations = await readMigrations()
  // A change of the preparing SQL leads to a new template.
  const prepared = JSON.stringify([prepareHomesSql('homes', defaultMaxObjects), migrations])
  const directory = join(cache, createHash('sha256').update(prepared).digest('hex').slice(0, 12))
  if (existsSync(join(directory, 'PG_VERSION'))) return directory
  await mkdir(cache, { recursive: true, mode: 0o755 })
  const pending = await mkdtemp(join(cache, 'making-'))
  await setOwner(pending, identity)
  const data = join(pending, 'postgres')
  await initialiseDataDirectory({ binaries, directory: data, superuserPassword: password, identity })
  const port = await freePort()
  const { command, args } = await asIdentity(identity, [binaries.root, pending], {
    command: binaries.postgres,
    args: postgresArguments(data, port),
  })
  const server = spawn(command, args, { stdio: 'ignore' })
  const url = (database: string) => `postgresql://postgres:${password}@127.0.0.1:${port}/${database}`
  await untilResponding(url('postgres'))
  await query(url('postgres'), 'create database control')
  await query(url('postgres'), 'create database homes')
  await query(url('homes'), prepareHomesSql('homes', defaultMaxObjects))
  await migrate(url('control'), migrations)
  const gone = once(server, 'exit')
  server.kill('SIGINT')
  await gone
  await rename(data, directory).catch(async (cause: unknown) => {
    // Another test file has created the same template meanwhile.
    if (!(cause instanceof Error && 'code' in cause && (cause.code === 'ENOTEMPTY' || cause.code === 'EEXIST')))
      throw cause
  })
  await rm(pending, { recursive: true, force: true })
  return directory
}

export async function query(url: string, sql: string, values: unknown[] = []): Promise<Record<string, unknown>[]> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    const result = values.length > 0 ? await client.query(sql, values) : await client.query(sql)
    return (Array.isArray(result) ? [] : result.rows) as Record<string, unknown>[]
  } finally {
    await client.end()
  }
}

const firstPort = 10_000
const portsPerFile = 2_000
const usedPorts = new Set<number>()

/**
 * Returns a free port that it has not returned before. The range is below the ports of outgoing connections and below
 * those that installations choose, so that a restarted service finds its port free. Test files that run at the same time
 * have ranges of their own: otherwise one file may take a port before a service of another file listens on it.
 */
export async function freePort(): Promise<number> {
  const first = firstPort + (Number(process.env['TAP_JOB_ID'] ?? 0) % 5) * portsPerFile
  for (;;) {
    const port = randomInt(first, first + portsPerFile)
    if (usedPorts.has(port) || !(await isFree(port))) continue
    usedPorts.add(port)
    return port
  }
}

async function untilResponding(url: string): Promise<void> {
  const deadline = Date.now() + 20_000
  for (;;) {
    try {
      await query(url, 'select 1')
      return
    } catch (cause) {
      if (Date.now() > deadline) throw new Error('Postgres did not respond within 20 s', { cause })
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
  }
}

async function execute(command: string, args: string[]): Promise<void> {
  const child = spawn(command, args, { stdio: ['ignore', 'ignore', 'inherit'] })
  const [code] = (await once(child, 'exit')) as [number | null]
  if (code !== 0) throw new Error(`${command} ended with ${code}`)
}
