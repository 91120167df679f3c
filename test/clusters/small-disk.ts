// Disks of a fixed size for Docker volumes, which tests fill. They need root, and an engine on this machine.
import { execFile } from 'node:child_process'
import { mkdtemp, rm, truncate, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { Test } from 'tap'
import { docker } from '#test/reconcile/support/docker-client.ts'

const diskBytes = 1.5e9
const run = promisify(execFile)

interface SmallDisk {
  fill(): Promise<void>
  empty(): Promise<void>
  /** Moves the data back. No container of the volume may run. */
  remove(): Promise<void>
}

/** Moves a volume to a disk of its own. No container of the volume may run, and the Engine may not be restarted meanwhile. */
export async function putOnSmallDisk(t: Test, volume: string): Promise<SmallDisk> {
  const directory = await docker('volume', 'inspect', '-f', '{{.Mountpoint}}', volume)
  const home = await mkdtemp(join(tmpdir(), 'tenantry-disk-'))
  const image = join(home, 'image')
  const copy = await mkdtemp(join(home, 'copy-'))
  const filler = join(directory, 'filler')
  let isMounted = false
  const unmount = async () => {
    if (isMounted) await run('umount', [directory])
    isMounted = false
  }
  t.teardown(async () => {
    await unmount()
    await rm(home, { recursive: true })
  })
  await writeFile(image, '')
  await truncate(image, diskBytes)
  await run('mkfs.ext4', ['-q', '-F', '-m', '0', image])
  const copyWith = async (from: string, to: string) => {
    await run('mount', ['-o', 'loop', image, copy])
    try {
      await run('cp', ['-a', `${from}/.`, to])
    } finally {
      await run('umount', [copy])
    }
  }
  await copyWith(directory, copy)
  await run('mount', ['-o', 'loop', image, directory])
  isMounted = true
  return {
    async fill() {
      // `head` ends with an error when the disk is full.
      const script = 'head -c 100G /dev/zero > "$1" 2> /dev/null; test "$(df --output=avail "$1" | tail -1)" -lt 100'
      await run('bash', ['-c', script, 'fill', filler])
    },
    empty: () => rm(filler),
    async remove() {
      await unmount()
      await run('find', [directory, '-mindepth', '1', '-delete'])
      await copyWith(copy, directory)
    },
  }
}
