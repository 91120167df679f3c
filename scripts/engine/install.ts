// Docker Engine from Debian's packages, if it is missing.
import { exists, installPackages } from '../debian-packages.ts'

const searched = ['/usr/local/sbin', '/usr/local/bin', '/usr/sbin', '/usr/bin', '/sbin', '/bin']
const programs = ['dockerd', 'containerd', 'iptables']

/** Installs missing programs. @throws Error if a program cannot be installed */
export async function ensureInstalled(): Promise<void> {
  if ((await missingPrograms()).length === 0) return
  // The system's own engine stays stopped: two in one network namespace remove each other's firewall rules.
  await installPackages('docker.io', 'iptables')
  const missing = await missingPrograms()
  if (missing.length > 0)
    throw new Error(`The packages were installed, but these programs are missing: ${missing.join(', ')}.`)
}

async function missingPrograms(): Promise<string[]> {
  const found = await Promise.all(
    programs.map((name) => Promise.all(searched.map((directory) => exists(`${directory}/${name}`)))),
  )
  return programs.filter((_, index) => found[index]?.includes(true) !== true)
}
