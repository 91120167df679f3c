// A small disk whose power can be cut: ext4 on a loop device, which loses everything that was not made durable. Also a
// small disk in memory that can be filled. Both need the right to mount.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, mkdtemp, rm, truncate, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Test } from 'tap'

export interface CuttableDisk {
  directory: string
  /** Cuts the power: from now on nothing reaches the disk, and what had not reached it is lost. */
  cut(): Promise<void>
  /** Restores the power. No file of the disk may be open. */
  restore(): Promise<void>
}

const megabytes = 64
/** EXT4_IOC_SHUTDOWN, _IOR('X', 125, __u32), and its flag that skips even the journal. */
const shutdown = 0x8004587d
const noLogFlush = 2

export async function openCuttableDisk(t: Test): Promise<CuttableDisk> {
  const home = await mkdtemp(join(tmpdir(), 'tenantry-disk-'))
  let image = join(home, 'image-0')
  const directory = join(home, 'disk')
  let copies = 0
  await mkdir(directory)
  await writeFile(image, '')
  await truncate(image, megabytes * 2 ** 20)
  await program('mkfs.ext4', ['-q', '-F', image])
  // Without the journal's periodic commits, only explicitly synced data survives.
  const mount = () => program('mount', ['-o', 'loop,commit=300', image, directory])
  await mount()
  t.teardown(async () => {
    await program('umount', [directory]).catch(() => undefined)
    await rm(home, { recursive: true, force: true })
  })
  return {
    directory,
    cut: () =>
      program('perl', [
        '-e',
        `open(my $d, '<', $ARGV[0]) or die $!; my $f = pack('L', ${noLogFlush}); ioctl($d, ${shutdown}, $f) or die "no power to cut: $!"`,
        directory,
      ]),
    async restore() {
      await program('umount', [directory])
      // A process with its own mounts may hold the old disk and keep it in use. The copy has the same content.
      const old = image
      image = join(home, `image-${++copies}`)
      await program('cp', ['--sparse=always', old, image])
      await rm(old)
      await mount()
    },
  }
}

/** Mounts a disk of this many bytes. */
export async function openSmallDisk(t: Test, bytes: number): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'tenantry-small-'))
  await program('mount', ['-t', 'tmpfs', '-o', `size=${bytes},mode=700`, 'tenantry-small', directory])
  t.teardown(async () => {
    await program('umount', [directory])
    await rm(directory, { recursive: true })
  })
  return directory
}

/** @throws Error with the output of the program */
async function program(name: string, args: readonly string[]): Promise<void> {
  const child = spawn(name, args, {
    stdio: ['ignore', 'ignore', 'pipe'],
    env: { ...process.env, PATH: `${process.env['PATH'] ?? ''}:/usr/sbin:/sbin` },
  })
  let output = ''
  child.stderr.on('data', (chunk: Buffer) => {
    output += chunk.toString()
  })
  const [code] = (await once(child, 'close')) as [number | null]
  if (code !== 0) throw new Error(`${name} ${args.join(' ')} ended with ${code}: ${output}`)
}
