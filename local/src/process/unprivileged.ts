// Running a service as another user than root. Postgres refuses root, and nothing that faces a network should be it.
// A normal user's installation runs everything as that user and needs none of this.
import { execFile } from 'node:child_process'
import { chown, readFile, stat } from 'node:fs/promises'
import { dirname } from 'node:path'
import { promisify } from 'node:util'

const run = promisify(execFile)

/** System user that the services of a root-started installation run as. */
const serviceUser = 'tenantry'

export interface Identity {
  uid: number
  gid: number
}

export interface Command {
  command: string
  args: string[]
}

/** Undefined when this process is no root: then services keep its identity. Makes the user when it is missing. */
export async function serviceIdentity(): Promise<Identity | undefined> {
  if (process.getuid?.() !== 0) return undefined
  const known = await findUser(serviceUser)
  if (known !== undefined) return known
  try {
    await run(
      'useradd',
      ['--system', '--no-create-home', '--home-dir', '/nonexistent', '--shell', '/usr/sbin/nologin', serviceUser],
      {
        env: { PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin' },
        timeout: 10_000,
      },
    )
  } catch (cause) {
    // Two installations may start at once; whoever came second finds the user made.
    if ((await findUser(serviceUser)) === undefined) {
      throw new Error(
        `Postgres does not run as root, and the system user "${serviceUser}" could not be made. ` +
          `Make it (useradd --system ${serviceUser}) or start as a normal user.`,
        { cause },
      )
    }
  }
  const made = await findUser(serviceUser)
  if (made === undefined) throw new Error(`the system user "${serviceUser}" was made but is not in /etc/passwd`)
  return made
}

async function findUser(name: string): Promise<Identity | undefined> {
  for (const line of (await readFile('/etc/passwd', 'utf8')).split('\n')) {
    const [user, , uid, gid] = line.split(':')
    if (user === name && uid !== undefined && gid !== undefined) return { uid: Number(uid), gid: Number(gid) }
  }
  return undefined
}

/** Gives a directory to the identity. Only the directory itself: what lies in it was made by its owner. */
export async function giveTo(directory: string, identity: Identity | undefined): Promise<void> {
  if (identity !== undefined) await chown(directory, identity.uid, identity.gid)
}

/**
 * The command that runs `command` as the identity. When an ancestor of a directory it needs is closed to
 * others (a clone below `/root`, say), the command gets a mount namespace of its own, in which that ancestor
 * shows nothing but the directories named: same paths, and no change to the machine's own tree.
 */
export async function asIdentity(
  identity: Identity | undefined,
  needs: string[],
  { command, args }: Command,
): Promise<Command> {
  if (identity === undefined) return { command, args }
  const drop = [
    'setpriv',
    `--reuid=${identity.uid}`,
    `--regid=${identity.gid}`,
    '--clear-groups',
    '--no-new-privs',
    '--bounding-set=-all',
    '--inh-caps=-all',
    command,
    ...args,
  ]
  const closed = await closedAncestors(needs)
  if (closed.size === 0) return { command: drop[0] ?? '', args: drop.slice(1) }
  const groups = [...closed].flatMap(([ancestor, directories]) => [
    ancestor,
    String(directories.length),
    ...directories,
  ])
  return {
    command: 'unshare',
    args: [
      '--mount',
      '--propagation',
      'private',
      'sh',
      '-c',
      openAncestorsScript,
      'sh',
      String(closed.size),
      ...groups,
      ...drop,
    ],
  }
}

/** $1 how many closed ancestors; for each: itself, how many directories follow, then these; at last the command. */
const openAncestorsScript = `
set -e
groups=$1; shift
stage=$(mktemp -d)
mount -t tmpfs -o mode=755 tenantry "$stage"
while [ "$groups" -gt 0 ]; do
  closed=$1; count=$2; shift 2
  i=0; for d in "$@"; do [ $i -lt "$count" ] || break; mkdir -p "$stage/$i"; mount --rbind "$d" "$stage/$i"; i=$((i+1)); done
  mount -t tmpfs -o mode=755 tenantry "$closed"
  i=0; while [ $i -lt "$count" ]; do mkdir -p "$1"; mount --rbind "$stage/$i" "$1"; umount -l "$stage/$i"; shift; i=$((i+1)); done
  groups=$((groups-1))
done
umount -l "$stage"; rmdir "$stage" 2>/dev/null || true
cd /
exec "$@"`

/** Directories by the topmost directory above them that others may not pass; those that all may reach are left out. */
async function closedAncestors(directories: string[]): Promise<Map<string, string[]>> {
  const closed = new Map<string, string[]>()
  for (const directory of directories) {
    const ancestors: string[] = []
    for (let at = dirname(directory); at !== '/'; at = dirname(at)) ancestors.unshift(at)
    for (const ancestor of ancestors) {
      const { mode } = await stat(ancestor)
      if ((mode & 0o001) !== 0) continue
      closed.set(ancestor, [...(closed.get(ancestor) ?? []), directory])
      break
    }
  }
  return closed
}
