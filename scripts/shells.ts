// The shells that tests complete commands in: the machine's or, if one is missing, Debian's packages.
import { exists, installPackages } from './debian-packages.ts'

const shells = ['bash', 'zsh', 'fish']

/** Installs missing shells. @throws Error if one cannot be installed */
export async function ensureShells(): Promise<void> {
  const missing = await missingShells()
  if (missing.length === 0) return
  await installPackages(...missing)
  const stillMissing = await missingShells()
  if (stillMissing.length > 0)
    throw new Error(`The packages were installed, but these shells are missing: ${stillMissing.join(', ')}.`)
}

async function missingShells(): Promise<string[]> {
  const found = await Promise.all(shells.map((name) => exists(`/usr/bin/${name}`)))
  return shells.filter((_, index) => found[index] !== true)
}
