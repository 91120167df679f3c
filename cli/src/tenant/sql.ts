// `sql` runs statements in a tenant's database, as the tenant's admin role.
import { readFile } from 'node:fs/promises'
import type { Command } from 'commander'
import pg from 'pg'
import { action, type Call } from '../call.ts'
import { findLink } from '../connection/connection.ts'
import { CommandError, exitCodes, usageError } from '../terminal/exit-codes.ts'
import { readStandardInput } from '../terminal/prompt.ts'
import { printable } from '../terminal/table.ts'
import type { Terminal } from '../terminal/terminal.ts'
import { textOf } from './json.ts'

const connectTimeoutMs = 10_000
const defaultTimeoutSeconds = 30
const maxTimeoutSeconds = 3_600

/** Adds `sql`. */
export function addSqlCommand(program: Command, terminal: Terminal): void {
  program
    .command('sql [statement]')
    .description("run SQL in the tenant's database; it may only read, unless you use --write")
    .option('--file <file>', 'read the statements from a file; `-` is standard input')
    .option('--write', 'the statements may change data')
    .option('--timeout <seconds>', `time limit, ${defaultTimeoutSeconds} by default`)
    .option('--ca <file>', "certificate of the installation's authority, to verify the server")
    .action(action(terminal, sql))
}

async function sql(call: Call, statement?: string): Promise<void> {
  const text = await readStatements(call, statement)
  const seconds = call.integer('timeout', 1, maxTimeoutSeconds) ?? defaultTimeoutSeconds
  const client = await openClient(call, seconds)
  // The query that is in progress fails with the error, too.
  client.on('error', () => undefined)
  const onAbort = () => void client.end().catch(() => undefined)
  call.terminal.signal.addEventListener('abort', onAbort, { once: true })
  try {
    await client.connect()
    await client.query(`set statement_timeout = ${seconds * 1000}`)
    // This prevents changes by mistake. A statement that resets the setting may change data.
    if (!call.isSet('write')) await client.query('set default_transaction_read_only = on')
    for (const result of resultsOf(await client.query({ text, rowMode: 'array' }))) show(call, result)
  } catch (error) {
    throw asCommandError(error)
  } finally {
    call.terminal.signal.removeEventListener('abort', onAbort)
    await client.end().catch(() => undefined)
  }
}

async function readStatements(call: Call, statement: string | undefined): Promise<string> {
  const file = call.text('file')
  if ((statement === undefined) === (file === undefined)) throw usageError('Use either a statement or --file.')
  if (statement !== undefined) return statement
  if (file === '-') return readStandardInput(call.terminal, 'the statements')
  try {
    return await readFile(call.path(file ?? ''), 'utf8')
  } catch (cause) {
    throw usageError(`The file ${file ?? ''} cannot be read.`, { cause })
  }
}

async function openClient(call: Call, seconds: number): Promise<pg.Client> {
  const { env } = call.terminal
  const stored =
    env.TENANTRY_DATABASE_URL !== undefined && env.TENANTRY_DATABASE_URL !== '' && call.text('link') === undefined
      ? env.TENANTRY_DATABASE_URL
      : findLink(await call.config(), env, call.text('link')).target.database_url
  if (stored === undefined)
    throw usageError('No database_url is known. Set TENANTRY_DATABASE_URL, or use `link` with --database-url-file.')
  if (!URL.canParse(stored)) throw usageError('The database_url is not a valid address.')
  const ca = call.text('ca')
  const certificate =
    ca === undefined
      ? undefined
      : await readFile(call.path(ca), 'utf8').catch((cause: unknown) => {
          throw usageError(`The file ${ca} cannot be read.`, { cause })
        })
  return new pg.Client({
    connectionString: stored,
    application_name: 'tenantry sql',
    connectionTimeoutMillis: connectTimeoutMs,
    query_timeout: (seconds + 5) * 1000,
    ...(certificate === undefined ? {} : { ssl: { ca: certificate } }),
    // Values are shown as Postgres writes them, so that no digit is lost.
    types: { getTypeParser: () => (value: string) => value },
  })
}

type Result = pg.QueryArrayResult<unknown[]>

function resultsOf(result: Result | Result[]): Result[] {
  return Array.isArray(result) ? result : [result]
}

function show(call: Call, { fields, rows, command, rowCount }: Result): void {
  if (fields.length === 0) {
    if (call.output.isJson) call.output.one({ command, row_count: rowCount })
    else call.output.progress(`${command}${rowCount === null ? '' : ` ${rowCount}`}`)
    return
  }
  const names = fields.map(({ name }) => name)
  if (call.output.isJson) {
    const members = uniqueNames(names)
    for (const row of rows) call.output.one(Object.fromEntries(members.map((member, at) => [member, row[at] ?? null])))
    return
  }
  call.output.rows(
    rows,
    names.map((name, at) => ({ title: printable(name), value: (row: unknown[]) => cell(row[at]) })),
    'No rows.',
  )
}

/** Returns names of which none is repeated: `a`, `a` become `a`, `a_2`. A name that occurs once stays as it is. */
function uniqueNames(names: readonly string[]): string[] {
  const taken = new Set(names)
  const seen = new Set<string>()
  return names.map((name) => {
    let unique = name
    for (let nth = 2; seen.has(unique) || (unique !== name && taken.has(unique)); nth++) unique = `${name}_${nth}`
    seen.add(unique)
    return unique
  })
}

function cell(value: unknown): string | null {
  return value === null || value === undefined ? null : textOf(value)
}

function asCommandError(error: unknown): unknown {
  if (!(error instanceof Error)) return error
  const code = 'code' in error ? String(error.code) : ''
  const isUnreachable =
    /^(E[A-Z]+|08...|57P0.)$/.test(code) || /timeout expired|Connection terminated/.test(error.message)
  const exitCode = isUnreachable
    ? exitCodes.unavailable
    : /^28/.test(code)
      ? exitCodes.access
      : /^[0-9A-Z]{5}$/.test(code)
        ? exitCodes.rejected
        : exitCodes.failure
  const hint = code === '25006' ? ' Use --write for statements that change data.' : ''
  return new CommandError(`${error.message}${code === '' ? '' : ` (${code})`}.${hint}`, exitCode, { cause: error })
}
