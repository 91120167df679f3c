// Debian's packages that tests and images need, where they are missing.
import { execFile } from 'node:child_process'
import { constants } from 'node:fs'
import { access } from 'node:fs/promises'
import { promisify } from 'node:util'

const run = promisify(execFile)

const installMilliseconds = 10 * 60_000

/** Tests run side by side, and apt-get would fail where another one is at work. */
const lockFile = '/run/lock/tenantry-packages'

/** Debian asks policy-rc.d before it starts a service that was just installed; 101 means no. */
const installation = `
  policy=/usr/sbin/policy-rc.d
  if [ ! -e $policy ]; then
    trap 'rm -f $policy' EXIT
    printf '#!/bin/sh\\nexit 101\\n' > $policy
    chmod 755 $policy
  fi
  apt-get update
  apt-get install -y --no-install-recommends "$@"`

/** Installs packages without starting any service of theirs. @throws Error that names them, with what apt-get said as its cause */
export async function installPackages(...names: readonly string[]): Promise<void> {
  if (process.getuid?.() !== 0) throw new Error(`install ${names.join(', ')}, or run as root`)
  try {
    await run('flock', [lockFile, 'sh', '-euc', installation, 'sh', ...names], {
      timeout: installMilliseconds,
      maxBuffer: 64 * 2 ** 20,
      env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' },
    })
  } catch (cause) {
    throw new Error(`apt-get could not install ${names.join(', ')}`, { cause })
  }
}

export async function exists(path: string): Promise<boolean> {
  return access(path, constants.F_OK).then(
    () => true,
    () => false,
  )
}
