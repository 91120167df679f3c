// A home's containers, as backups use them: programs run inside, and their input and output are piped.
import type { ExecResult, Engine } from '../engines/index.ts'
import { loggedIn, type Login } from './login.ts'
import type { RunStream } from './psql-session.ts'
import type { RuntimeFiles } from './shared/runtime-files.ts'

/** The services of a tenant's own that hold its files. */
export interface FilesLocation {
  engine: Engine
  /** The stack of its containers. */
  stack: string
  /** The stack whose volume holds the blobs; absent: `stack`. */
  filesStack?: string
  /** The services whose volume holds the blobs. Scripts run in the first one. */
  filesServices: readonly [string, ...string[]]
  /** The blobs of services that have no volume in common: in a bucket, which others reach through runtimes; absent: on the volume. */
  bucket?: RuntimeFiles
}

/** The services of a tenant's own that hold its home and its files. */
export interface HomeLocation extends FilesLocation {
  /** The service of its Postgres; of a cluster, the primary. */
  postgres: string
  database: string
  /** The directory of the tenant's blobs, in the service with their volume. */
  blobs: string
}

/** The directory where the runtime stores its data, which is one volume. */
export const runtimeData = '/var/lib/tenantry'

/** Returns the directory of a tenant's blobs in its runtime. */
export function blobsOf(tenantId: string): string {
  return `${runtimeData}/blobs/${tenantId}`
}

const psql = ['psql', '-X', '-q', '-v', 'ON_ERROR_STOP=1', '-v', 'VERBOSITY=verbose']

export const inPostgres =
  ({ engine, stack, postgres }: HomeLocation): RunStream =>
  (command, options) =>
    engine.execStream(stack, postgres, command, options)
/** Runs a program in the service that holds the blobs, and yields its output. */
export const inFiles =
  ({ engine, stack, filesStack = stack, filesServices: [service] }: FilesLocation): RunStream =>
  (command, options) =>
    engine.execStream(filesStack, service, command, options)

/**
 * Runs SQL as superuser.
 * @throws Error with the output of psql, which is not public
 */
export async function asSuperuser(
  { engine, stack, postgres }: HomeLocation,
  database: string,
  sql: string,
  signal: AbortSignal,
): Promise<void> {
  done(
    'psql',
    await engine.exec(stack, postgres, [...psql, '-U', 'postgres', '-d', database, '-f', '-'], {
      input: `${sql};\n`,
      signal,
    }),
  )
}

/**
 * Runs SQL as a login over TCP, as every client except the superuser does. Code that a tenant has put into its home
 * runs with only that login's rights.
 * @returns the rows, a line each
 */
export async function asLogin(
  { engine, stack, postgres, database }: HomeLocation,
  login: Login,
  sql: string,
  signal: AbortSignal,
  transaction: readonly string[] = ['-1'],
): Promise<string> {
  const command = loggedIn(login, [...psql, '-A', '-t', ...transaction, '-d', database, '-f', '-'])
  return done('psql', await engine.exec(stack, postgres, command, { input: `${login.password}\n${sql};\n`, signal }))
    .stdout
}

/**
 * Restores a section of a dump. Errors of single objects are returned, and the later comparison decides.
 * @returns the error output of pg_restore
 */
export async function restoreSection(
  location: HomeLocation,
  login: Login,
  schema: string,
  section: 'pre-data' | 'data' | 'post-data',
  dump: AsyncIterable<Uint8Array>,
  signal: AbortSignal,
): Promise<string> {
  const restore = ['pg_restore', '-d', location.database, '-n', schema, `--section=${section}`, '--no-owner']
  async function* input() {
    yield Buffer.from(`${login.password}\n`)
    yield* dump
  }
  const { stderr } = await location.engine.exec(location.stack, location.postgres, loggedIn(login, restore), {
    input: input(),
    signal,
  })
  return stderr.trim()
}

/** Runs a script in the service that holds the blobs. Its arguments are `$1` and following. */
export async function filesScript(
  { engine, stack, filesStack = stack, filesServices: [service] }: FilesLocation,
  script: string,
  parameters: readonly string[],
  options: { input?: AsyncIterable<Uint8Array>; signal: AbortSignal },
): Promise<ExecResult> {
  return done(
    'bash',
    await engine.exec(filesStack, service, ['bash', '-euo', 'pipefail', '-c', script, 'bash', ...parameters], options),
  )
}

function done(what: string, result: ExecResult): ExecResult {
  if (result.code !== 0)
    throw new Error(`${what} exited with code ${result.code}: ${result.stderr.trim().slice(-2000)}`)
  return result
}
