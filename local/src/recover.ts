// Rebuilds a lost installation at the start: the programs that restore the control database, and then the tenants.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { ConfigurationError, configurationExitCode } from '@tenantry/contract'
import type { ProcessService } from './process/supervisor.ts'
import { asIdentity, type Identity } from './process/unprivileged.ts'

const project = fileURLToPath(new URL('../../', import.meta.url))
const maxErrorBytes = 4_000

interface Program {
  /** The service of the control plane, whose environment and rights the programs get. */
  service: ProcessService
  identity: Identity | undefined
  /** The file descriptor that receives what was restored. */
  output: number
  signal: AbortSignal
}

/**
 * Restores the control database from its newest dump, unless an earlier start has done so.
 * @throws ConfigurationError with the reason why nothing was restored
 */
export async function recoverControlDatabase(program: Program): Promise<void> {
  const { code, error } = await run(program, [join(project, 'control-plane/src/recover-main.ts')])
  if (code === configurationExitCode) throw new ConfigurationError(error)
  if (code !== 0) throw new Error('The control database was not restored. The lines above contain the reason.')
}

/**
 * Restores all tenants whose data are gone from their newest backups.
 * @param since the time before the start of the control plane
 * @returns whether all of them were restored
 */
export async function restoreTenants(
  program: Program,
  controlUrl: string,
  keyFile: string,
  since: Date,
): Promise<boolean> {
  const script = join(project, 'scripts/restore-lost-tenants.ts')
  const options = ['--since', since.toISOString(), '--control-url', controlUrl, '--key-file', keyFile]
  return (await run(program, [script, ...options])).code === 0
}

/** Runs a program. @returns its exit code, and the last line that it has written to standard error */
async function run(
  { service, identity, output, signal }: Program,
  args: string[],
): Promise<{ code: number | null; error: string }> {
  const { command, args: all } = await asIdentity(identity, service.needs, { command: service.command, args })
  const child = spawn(command, all, {
    cwd: service.cwd,
    env: service.environment,
    stdio: ['ignore', output, 'pipe'],
    signal,
  })
  let text = ''
  child.stderr?.setEncoding('utf8').on('data', (chunk: string) => {
    process.stderr.write(chunk)
    text = `${text}${chunk}`.slice(-maxErrorBytes)
  })
  const [code] = (await once(child, 'close')) as [number | null]
  return { code, error: text.trim().split('\n').at(-1) ?? '' }
}
