// Reads the free space where the Engine of this host stores images and volumes.
import { access, statfs } from 'node:fs/promises'
import type { HostInfo } from '../index.ts'

/**
 * File that exists inside containers. From inside, the Engine's directory is not visible, but `/` is on the same disk.
 */
const containerMarker = '/.dockerenv'

/** Returns the space of the disk that holds a directory; undefined if it cannot be read. */
export async function diskOf(directory: string | undefined): Promise<HostInfo['disk']> {
  if (directory === undefined) return undefined
  return (await spaceAt(directory)) ?? ((await exists(containerMarker)) ? spaceAt('/') : undefined)
}

async function spaceAt(path: string): Promise<HostInfo['disk']> {
  try {
    const { bavail, blocks, bsize } = await statfs(path)
    return { freeBytes: bavail * bsize, totalBytes: blocks * bsize }
  } catch {
    return undefined
  }
}

async function exists(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  )
}
