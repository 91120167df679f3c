// How much room there is where an Engine of this host keeps images and volumes.
import { access, statfs } from 'node:fs/promises'
import type { HostInfo } from '../index.ts'

/** Everything of a container that is in no volume lies in the Engine's directory, which is not seen from inside. */
const containerMark = '/.dockerenv'

/** Undefined where it can't be seen. */
export async function diskOf(directory: string | undefined): Promise<HostInfo['disk']> {
  if (directory === undefined) return undefined
  return (await spaceAt(directory)) ?? ((await isThere(containerMark)) ? spaceAt('/') : undefined)
}

async function spaceAt(path: string): Promise<HostInfo['disk']> {
  try {
    const { bavail, blocks, bsize } = await statfs(path)
    return { freeBytes: bavail * bsize, totalBytes: blocks * bsize }
  } catch {
    return undefined
  }
}

async function isThere(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  )
}
