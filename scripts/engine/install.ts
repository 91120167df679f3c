// Docker Engine from Debian's packages, where it is missing.
import { execFile } from 'node:child_process'
import { constants } from 'node:fs'
import { access, rm, writeFile } from 'node:fs/promises'
import { promisify } from 'node:util'

const run = promisify(execFile)

const searched = ['/usr/local/sbin', '/usr/local/bin', '/usr/sbin', '/usr/bin', '/sbin', '/bin']
const programs = ['dockerd', 'containerd', 'iptables']
const installMilliseconds = 10 * 60_000

/** Debian asks this file before it starts a service that was just installed; 101 means no. */
const policyFile = '/usr/sbin/policy-rc.d'

/** @throws Error when a program is missing and can't be installed */
export async function ensureInstalled(): Promise<void> {
  if ((await missingPrograms()).length === 0) return
  const hasPolicy = await exists(policyFile)
  try {
    // The system's own engine stays off: two in one network namespace take each other's firewall rules away.
    if (!hasPolicy) await writeFile(policyFile, '#!/bin/sh\nexit 101\n', { mode: 0o755 })
    await aptGet('update')
    await aptGet('install', '-y', '--no-install-recommends', 'docker.io', 'iptables')
  } catch (cause) {
    throw new Error('Docker Engine is not installed, and apt-get could not install docker.io and iptables', { cause })
  } finally {
    if (!hasPolicy) await rm(policyFile, { force: true })
  }
  const missing = await missingPrograms()
  if (missing.length > 0) throw new Error(`installed, but not found: ${missing.join(', ')}`)
}

async function missingPrograms(): Promise<string[]> {
  const found = await Promise.all(programs.map((name) => Promise.all(searched.map((directory) => exists(`${directory}/${name}`)))))
  return programs.filter((_, index) => found[index]?.includes(true) !== true)
}

async function aptGet(...args: string[]): Promise<void> {
  await run('apt-get', args, { timeout: installMilliseconds, maxBuffer: 64 * 2 ** 20, env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' } })
}

async function exists(path: string): Promise<boolean> {
  return access(path, constants.F_OK).then(() => true, () => false)
}
