// Debian's packages that tests and images need. It installs missing ones.
import { execFile } from 'node:child_process'
import { constants } from 'node:fs'
import { access } from 'node:fs/promises'
import { promisify } from 'node:util'

const run = promisify(execFile)

const installMilliseconds = 10 * 60_000

/** Lock of the installation. Tests run concurrently, and apt-get fails while another one runs. */
const lockFile = '/run/lock/tenantry-packages'

/**
 * Script of the installation. Debian calls policy-rc.d before it starts a service that was just installed; 101 rejects
 * the start.
 */
const installation = `
  policy=/usr/sbin/policy-rc.d
  if [ ! -e $policy ]; then
    trap 'rm -f $policy' EXIT
    printf '#!/bin/sh\\nexit 101\\n' > $policy
    chmod 755 $policy
  fi
  apt-get update
  apt-get install -y --no-install-recommends "$@"`

/**
 * Installs packages without starting their services. @throws Error that names them, with apt-get's output as its cause
 */
export async function installPackages(...names: readonly string[]): Promise<void> {
  if (process.getuid?.() !== 0)
    throw new Error(`The packages ${names.join(', ')} are missing. Install them, or run as root.`)
  try {
    await run('flock', [lockFile, 'sh', '-euc', installation, 'sh', ...names], {
      timeout: installMilliseconds,
      maxBuffer: 64 * 2 ** 20,
      env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' },
    })
  } catch (cause) {
    throw new Error(`apt-get could not install ${names.join(', ')}.`, { cause })
  }
}

export async function exists(path: string): Promise<boolean> {
  return access(path, constants.F_OK).then(
    () => true,
    () => false,
  )
}
