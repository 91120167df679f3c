// Chromium for tests: the machine's or, if it is missing, Debian's package.
import { exists, installPackages } from './debian-packages.ts'

const program = '/usr/bin/chromium'
/** Returns the path of the program. @throws Error if it is missing and cannot be installed */
/** @returns the path of the program. @throws Error when there is none and none can be installed */
export async function ensureChromium(): Promise<string> {
  if (await exists(program)) return program
  await installPackages('chromium')
  if (!(await exists(program))) throw new Error(`chromium was installed, but ${program} is still missing.`)
  return program
}
