// OpenStack Swift for tests, an object store with the S3 API, from Debian's packages if it is missing.
import { exists, installPackages } from './debian-packages.ts'

const programs = ['swift-proxy-server', 'swift-account-server', 'swift-container-server', 'swift-object-server']

/** Installs missing programs. @throws Error if a program cannot be installed */
export async function ensureSwift(): Promise<void> {
  if ((await missingPrograms()).length === 0) return
  await installPackages('swift-proxy', 'swift-account', 'swift-container', 'swift-object')
  const missing = await missingPrograms()
  if (missing.length > 0)
    throw new Error(`The packages were installed, but these programs are missing: ${missing.join(', ')}.`)
}

async function missingPrograms(): Promise<string[]> {
  const found = await Promise.all(programs.map((name) => exists(`/usr/bin/${name}`)))
  return programs.filter((_, index) => found[index] !== true)
}
