// OpenStack Swift for tests, an object store that speaks S3: Debian's packages, where they are missing.
import { exists, installPackages } from './debian-packages.ts'

const programs = ['swift-proxy-server', 'swift-account-server', 'swift-container-server', 'swift-object-server']

/** @throws Error when it is missing and can't be installed */
export async function ensureSwift(): Promise<void> {
  if ((await missingPrograms()).length === 0) return
  await installPackages('swift-proxy', 'swift-account', 'swift-container', 'swift-object')
  const missing = await missingPrograms()
  if (missing.length > 0) throw new Error(`installed, but not found: ${missing.join(', ')}`)
}

async function missingPrograms(): Promise<string[]> {
  const found = await Promise.all(programs.map((name) => exists(`/usr/bin/${name}`)))
  return programs.filter((_, index) => found[index] !== true)
}
