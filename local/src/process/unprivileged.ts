// Runs a service as another user than root. Postgres rejects root, and no program that faces a network should be root.
// An installation of a normal user runs everything as that user and needs none of this.
import { execFile } from 'node:child_process'
import { chown, readFile, stat } from 'node:fs/promises'
import { dirname } from 'node:path'
import { promisify } from 'node:util'

const run = promisify(execFile)

/** System user of the services of an installation that root starts. */
export const serviceUser = 'tenantry'

export interface Identity {
  uid: number
  gid: number
}

export interface Command {
  command: string
  args: string[]
}

/**
 * Returns the services' identity, and creates the user if it is missing; undefined if this process is not root and
 * services keep its identity.
 */
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
    // Two installations may start at once. The second one finds the user.
    if ((await findUser(serviceUser)) === undefined) {
      throw new Error(
        `Postgres does not run as root, and the system user "${serviceUser}" could not be created. ` +
          `Create it (useradd --system ${serviceUser}) or start as a normal user.`,
        { cause },
      )
    }
  }
  const made = await findUser(serviceUser)
  if (made === undefined) throw new Error(`The system user "${serviceUser}" was created but is not in /etc/passwd.`)
  return made
}

async function findUser(name: string): Promise<Identity | undefined> {
  for (const line of (await readFile('/etc/passwd', 'utf8')).split('\n')) {
    const [user, , uid, gid] = line.split(':')
    if (user === name && uid !== undefined && gid !== undefined) return { uid: Number(uid), gid: Number(gid) }
  }
  return undefined
}

/** Sets the owner of a directory, and not of its content, which its creator owns. */
export async function setOwner(directory: string, identity: Identity | undefined): Promise<void> {
  if (identity !== undefined) await chown(directory, identity.uid, identity.gid)
}

/**
 * Returns a command that runs `command` as the identity. If others cannot enter an ancestor of a needed directory, for
 * example of a clone below `/root`, the command gets its own mount namespace. In it, that ancestor contains only the
 * named directories under the same paths, and the machine's own tree does not change.
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

/**
 * Script. Its arguments are the number of closed ancestors; for each of them its path, the number of its directories,
 * and these; and finally the command.
 */
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

/** Groups directories by the topmost ancestor that others cannot enter, and omits those that others can reach. */
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
