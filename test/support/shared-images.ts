// The images of the test's engine for further engines of this machine, without a copy of their layers.
import { execFile } from 'node:child_process'
import { cp, mkdir, readdir, readFile, rm, symlink } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { engineAddress } from './docker.ts'

const run = promisify(execFile)

/** A directory to mount into the data of an engine before it starts. */
export interface SharedLayer {
  from: string
  to: string
}

/**
 * Gives a new engine the images of the test's engine, whose data must be on this machine.
 * @param data directory of the new engine's data, which does not exist yet
 * @returns the layers, to be mounted. The new engine marks them as used, and must not remove its images
 */
export async function shareImages(data: string): Promise<SharedLayer[]> {
  const { stdout } = await run('docker', ['-H', engineAddress(), 'info', '--format', '{{.DockerRootDir}} {{.Driver}}'])
  const [root = '', driver = ''] = stdout.trim().split(' ')
  if (driver !== 'overlay2') throw new Error(`The engine stores its images with ${driver}. Required: overlay2.`)
  await cp(join(root, 'image'), join(data, 'image'), { recursive: true })
  const database = join(data, 'image', driver, 'layerdb')
  // What its containers have written is not part of the images.
  for (const name of ['mounts', 'tmp']) await rm(join(database, name), { recursive: true, force: true })
  await mkdir(join(data, driver, 'l'), { recursive: true })
  const chains = await readdir(join(database, 'sha256'))
  return Promise.all(
    chains.map(async (chain) => {
      const layer = await readFile(join(database, 'sha256', chain, 'cache-id'), 'utf8')
      const [from, to] = [join(root, driver, layer), join(data, driver, layer)]
      await mkdir(to)
      // The engine mounts layers by these short names.
      await symlink(join('..', layer, 'diff'), join(data, driver, 'l', await readFile(join(from, 'link'), 'utf8')))
      return { from, to }
    }),
  )
}
