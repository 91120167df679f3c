// Chromium for tests: the machine's, or Debian's package where it is missing.
import { exists, installPackages } from './debian-packages.ts'

const program = '/usr/bin/chromium'

/** @returns the path of the program. @throws Error when there is none and none can be installed */
export async function ensureChromium(): Promise<string> {
  if (await exists(program)) return program
  await installPackages('chromium')
  if (!(await exists(program))) throw new Error(`chromium was installed, and ${program} is still missing`)
  return program
}
