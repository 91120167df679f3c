// Debian's packages that tests and images need, where they are missing.
import { execFile } from 'node:child_process'
import { constants } from 'node:fs'
import { access, rm, writeFile } from 'node:fs/promises'
import { promisify } from 'node:util'

const run = promisify(execFile)

const installMilliseconds = 10 * 60_000

/** Debian asks this file before it starts a service that was just installed; 101 means no. */
const policyFile = '/usr/sbin/policy-rc.d'

/** Installs packages without starting any service of theirs. @throws Error that names them, with what apt-get said as its cause */
export async function installPackages(...names: readonly string[]): Promise<void> {
  if (process.getuid?.() !== 0) throw new Error(`install ${names.join(', ')}, or run as root`)
  const hasPolicy = await exists(policyFile)
  try {
    if (!hasPolicy) await writeFile(policyFile, '#!/bin/sh\nexit 101\n', { mode: 0o755 })
    await aptGet('update')
    await aptGet('install', '-y', '--no-install-recommends', ...names)
  } catch (cause) {
    throw new Error(`apt-get could not install ${names.join(', ')}`, { cause })
  } finally {
    if (!hasPolicy) await rm(policyFile, { force: true })
  }
}

export async function exists(path: string): Promise<boolean> {
  return access(path, constants.F_OK).then(() => true, () => false)
}

async function aptGet(...args: string[]): Promise<void> {
  await run('apt-get', args, { timeout: installMilliseconds, maxBuffer: 64 * 2 ** 20, env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' } })
}
