// Chromium for tests: the machine's, or Debian's package where it is missing.
import { execFile } from 'node:child_process'
import { access } from 'node:fs/promises'
import { promisify } from 'node:util'

const run = promisify(execFile)

const program = '/usr/bin/chromium'
const installMilliseconds = 10 * 60_000

/** @returns the path of the program. @throws Error when there is none and none can be installed */
export async function ensureChromium(): Promise<string> {
  if (await isThere()) return program
  if (process.getuid?.() !== 0) throw new Error(`${program} is missing: install Debian's package chromium, or run as root`)
  try {
    await apt('update')
    await apt('install', '-y', '--no-install-recommends', 'chromium')
  } catch (cause) {
    throw new Error(`${program} is missing, and apt-get could not install chromium`, { cause })
  }
  if (!(await isThere())) throw new Error(`chromium was installed, and ${program} is still missing`)
  return program
}

async function isThere(): Promise<boolean> {
  return access(program).then(() => true, () => false)
}

async function apt(...args: string[]): Promise<void> {
  await run('apt-get', args, { timeout: installMilliseconds, maxBuffer: 64 * 2 ** 20, env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' } })
}
