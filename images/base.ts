// Provides the base image: from the engine, or pulled, or created with debootstrap if no image registry is reachable.
import { execFile } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type Docker from 'dockerode'
import { follow } from './progress.ts'

const run = promisify(execFile)

export const baseImage = 'debian:trixie-slim'
const suite = 'trixie'
const pullMilliseconds = 120_000
const makeMilliseconds = 15 * 60_000

/** Files that a container does not need, and lists that apt downloads again. Debian's own image lacks them too. */
const stripped = ['var/lib/apt/lists', 'var/cache', 'var/log', 'usr/share/man', 'usr/share/info', 'usr/share/locale']
/** Excludes the same files from packages that images install later. Licenses stay. */
const dpkgExcludes =
  ['man/*', 'info/*', 'locale/*', 'doc/*'].map((path) => `path-exclude=/usr/share/${path}\n`).join('') +
  'path-include=/usr/share/doc/*/copyright\n'

/**
 * Returns the ID of the base image. Pulls or creates the image if the engine does not have it.
 * @throws Error that states why it can be neither pulled nor created
 */
export async function ensureBaseImage(docker: Docker, note: (text: string) => void): Promise<string> {
  const found = await imageId(docker, baseImage)
  if (found !== undefined) return found
  try {
    note(`pulling ${baseImage}`)
    const stream = await docker.pull(baseImage, { abortSignal: AbortSignal.timeout(pullMilliseconds) })
    await follow(docker, stream, () => undefined)
  } catch (cause) {
    note(`${baseImage} can't be pulled; creating it with debootstrap`)
    await makeBaseImage(docker, cause)
  }
  const made = await imageId(docker, baseImage)
  if (made === undefined) throw new Error(`The engine does not have ${baseImage} although it was created.`)
  return made
}

export async function imageId(docker: Docker, name: string): Promise<string | undefined> {
  try {
    return (await docker.getImage(name).inspect()).Id
  } catch (error) {
    if (error instanceof Error && 'statusCode' in error && error.statusCode === 404) return undefined
    throw error
  }
}

async function makeBaseImage(docker: Docker, cause: unknown): Promise<void> {
  if (process.getuid?.() !== 0) {
    throw new Error(
      `${baseImage} can't be pulled, and only root can create it (debootstrap). Load it into the engine, or build as root once.`,
      { cause },
    )
  }
  await ensureDebootstrap()
  const directory = await mkdtemp(join(tmpdir(), 'tenantry-base-'))
  try {
    await execute('debootstrap', ['--variant=minbase', suite, directory])
    // The directories stay, because apt does not create them.
    await execute('find', [...stripped.map((path) => join(directory, path)), '-type', 'f', '-delete'])
    await execute('find', [join(directory, 'usr/share/doc'), '-type', 'f', '!', '-name', 'copyright', '-delete'])
    await writeFile(join(directory, 'etc/dpkg/dpkg.cfg.d/slim'), dpkgExcludes)
    const file = `${directory}.tar`
    await execute('tar', ['--numeric-owner', '--directory', directory, '--create', '--file', file, '.'])
    try {
      await follow(
        docker,
        await docker.importImage(file, { fromSrc: '-', repo: baseImage, changes: 'CMD ["bash"]' }),
        () => undefined,
      )
    } finally {
      await rm(file, { force: true })
    }
  } finally {
    await rm(directory, { recursive: true, force: true })
  }
}

async function ensureDebootstrap(): Promise<void> {
  if (
    await run('debootstrap', ['--version']).then(
      () => true,
      () => false,
    )
  )
    return
  try {
    await execute('apt-get', ['update'])
    await execute('apt-get', ['install', '-y', '--no-install-recommends', 'debootstrap', 'debian-archive-keyring'])
  } catch (error) {
    throw new Error(`${baseImage} can't be pulled, and debootstrap can't be installed`, { cause: error })
  }
}

async function execute(command: string, args: string[]): Promise<void> {
  await run(command, args, {
    timeout: makeMilliseconds,
    maxBuffer: 64 * 2 ** 20,
    env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' },
  })
}
