// Docker Compose for tests: the engine's plugin, the older program or, if both are missing, Debian's package.
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { installPackages } from './debian-packages.ts'

const run = promisify(execFile)

const commandMilliseconds = 5 * 60_000

/** Runs a command of Compose. @throws Error with its output */
export type Compose = (args: readonly string[], environment: Readonly<Record<string, string>>) => Promise<string>

/** Returns Docker Compose. @throws Error if it is missing and cannot be installed */
export async function ensureCompose(): Promise<Compose> {
  const found = (await works('docker', ['compose'])) ?? (await works('docker-compose', []))
  if (found !== undefined) return found
  await installPackages('docker-compose')
  const installed = await works('docker-compose', [])
  if (installed === undefined) throw new Error('docker-compose was installed but does not run.')
  return installed
}

/** Returns the beginning of a command line of Docker Compose, after `ensureCompose`. */
export async function composeCommand(): Promise<string> {
  return (await works('docker', ['compose'])) === undefined ? 'docker-compose' : 'docker compose'
}

async function works(program: string, before: readonly string[]): Promise<Compose | undefined> {
  const compose: Compose = async (args, environment) => {
    const options = { timeout: commandMilliseconds, maxBuffer: 16 * 2 ** 20, env: { ...process.env, ...environment } }
    const { stdout, stderr } = await run(program, [...before, ...args], options)
    return stdout + stderr
  }
  return compose(['version'], {}).then(
    () => compose,
    () => undefined,
  )
}
