// The data directory that each new Postgres of a tenant copies, and the file that decides who may log in to these servers.
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmod, mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { replaceFile } from '@tenantry/contract'
import type { PostgresBinaries } from '../process/postgres-files.ts'
import { asIdentity, setOwner, type Identity } from '../process/unprivileged.ts'
import type { HostPaths } from './host-paths.ts'

const run = promisify(execFile)
const programMilliseconds = 120_000

/**
 * The superuser connects only over the socket, which only the server's own user can reach, and all other roles only over
 * TCP with a password.
 */
const hostBasedAccess = `# npm start writes this file at each start.
local all all trust
local replication all reject
host all postgres all reject
host all all all scram-sha-256
`

interface TemplateOptions {
  paths: HostPaths
  binaries: PostgresBinaries
  identity: Identity | undefined
}

/** Writes the file that decides who may log in. */
export async function writeHostBasedAccess({ paths }: Pick<TemplateOptions, 'paths'>): Promise<void> {
  await replaceFile(paths.hostBasedAccess, hostBasedAccess, { mode: 0o644 })
}

/**
 * Creates the template unless it exists for this version of Postgres. It has no secret, so every tenant's user may read
 * it: its superuser has no password.
 */
export async function ensureTemplate({ paths, binaries, identity }: TemplateOptions): Promise<void> {
  const { stdout } = await run(binaries.postgres, ['--version'], { timeout: programMilliseconds })
  const mark = join(paths.template, 'tenantry.version')
  if ((await readFile(mark, 'utf8').catch(() => '')) === stdout) return
  const making = `${paths.template}.making`
  await rm(making, { recursive: true, force: true })
  await mkdir(making, { mode: 0o700 })
  await setOwner(making, identity)
  const as = (command: string, args: string[]) =>
    asIdentity(identity, [binaries.root, dirname(making)], { command, args })
  const initdb = await as(binaries.initdb, [
    ...['--pgdata', making, '--username', 'postgres', '--encoding', 'UTF8', '--locale', 'C.UTF-8'],
    ...['--data-checksums', '--auth', 'reject', '--no-instructions', '--no-sync'],
  ])
  await run(initdb.command, initdb.args, { env: { PATH: process.env['PATH'] ?? '' }, timeout: programMilliseconds })
  const single = await as(binaries.postgres, ['--single', '-D', making, '-c', 'exit_on_error=true', 'postgres'])
  await runWithInput(single.command, single.args, 'create database home template template0\n')
  await writeFile(join(making, 'tenantry.version'), stdout)
  await run('chmod', ['-R', 'a+rX', making], { timeout: programMilliseconds })
  await chmod(making, 0o755)
  await rm(paths.template, { recursive: true, force: true })
  await rename(making, paths.template)
}

async function runWithInput(command: string, args: string[], input: string): Promise<void> {
  const child = spawn(command, args, { stdio: ['pipe', 'ignore', 'pipe'], timeout: programMilliseconds })
  let errors = ''
  child.stderr.setEncoding('utf8').on('data', (text: string) => (errors = (errors + text).slice(-2_000)))
  child.stdin.on('error', () => undefined).end(input)
  const [code] = (await once(child, 'exit')) as [number | null]
  if (code !== 0) throw new Error(`The template of a data directory could not be made: ${errors.trim()}`)
}
