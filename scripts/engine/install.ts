// Docker Engine from Debian's packages, where it is missing.
import { exists, installPackages } from '../debian-packages.ts'

const searched = ['/usr/local/sbin', '/usr/local/bin', '/usr/sbin', '/usr/bin', '/sbin', '/bin']
const programs = ['dockerd', 'containerd', 'iptables']

/** @throws Error when a program is missing and can't be installed */
export async function ensureInstalled(): Promise<void> {
  if ((await missingPrograms()).length === 0) return
  // The system's own engine stays off: two in one network namespace take each other's firewall rules away.
  await installPackages('docker.io', 'iptables')
  const missing = await missingPrograms()
  if (missing.length > 0) throw new Error(`installed, but not found: ${missing.join(', ')}`)
}

async function missingPrograms(): Promise<string[]> {
  const found = await Promise.all(
    programs.map((name) => Promise.all(searched.map((directory) => exists(`${directory}/${name}`)))),
  )
  return programs.filter((_, index) => found[index]?.includes(true) !== true)
}
