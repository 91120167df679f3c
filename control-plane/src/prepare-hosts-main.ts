// The command of `deploy/setup --swarm` that writes the files of all hosts. It runs as root, because each file belongs to the user of
// the container that reads it.
import {
  chmodSync,
  chownSync,
  closeSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { ConfigurationError, readOrExit } from '@tenantry/contract'
import { platformFiles, readPlatformOptions, type PlatformFile, type StoredFiles } from './deployment/index.ts'
import { systemClock } from './platform/clock.ts'

const [root = '', ...args] = process.argv.slice(2)

function write(path: string, text: string, user: number): void {
  const whole = join(root, path)
  mkdirSync(dirname(whole), { recursive: true, mode: 0o700 })
  writeFileSync(`${whole}.new`, text, { mode: 0o400, flush: true })
  chownSync(`${whole}.new`, user, user)
  renameSync(`${whole}.new`, whole)
}

/** Writes the names of the files in a directory to the disk. */
function syncDirectory(path: string): void {
  const directory = openSync(path, 'r')
  try {
    fsyncSync(directory)
  } finally {
    closeSync(directory)
  }
}

/** Returns the result of a read of the file system; undefined if the path does not exist. */
function ifExists<T>(read: () => T): T | undefined {
  try {
    return read()
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined
    throw error
  }
}

/** Texts of the files that deploy/setup-swarm passes in a directory, by their paths below it. */
const passed = new Map(
  filesBelow('incoming').map((path) => [path.slice('incoming/'.length), readFileSync(join(root, path), 'utf8')]),
)
/** Files to write when everything has been read and checked, in the order in which they are written. */
const created = new Map<string, string>()

const stored: StoredFiles = {
  read(path) {
    const text = created.get(path) ?? passed.get(path) ?? ifExists(() => readFileSync(join(root, path), 'utf8'))
    if (text?.trim() === '')
      throw new ConfigurationError(
        `The file ${path} is empty. Restore it from a copy, or remove it if it is not used yet.`,
      )
    return text
  },
  write: (path, text) => void created.set(path, text),
  keep(path, create) {
    const found = stored.read(path)
    if (found !== undefined) return found
    const text = create()
    stored.write(path, text)
    return text
  },
  names: (directory) => (ifExists(() => readdirSync(join(root, directory))) ?? []).sort(),
}

/** Returns the paths of all files below a directory. */
function filesBelow(directory: string): string[] {
  const entries = ifExists(() => readdirSync(join(root, directory), { withFileTypes: true })) ?? []
  return entries.flatMap((entry) => {
    const path = `${directory}/${entry.name}`
    return entry.isDirectory() ? filesBelow(path) : [path]
  })
}

/**
 * Lets the containers' users read the directories that they mount, which are two levels below that of the host. On the host itself,
 * only root reads what is in the directory of the host.
 */
function openDirectories({ path, user }: PlatformFile): void {
  const [all = '', host = '', ...below] = path.split('/').slice(0, -1)
  chmodSync(join(root, all, host), 0o700)
  for (const [depth] of below.entries()) {
    const directory = join(root, all, host, ...below.slice(0, depth + 1))
    chmodSync(directory, 0o755)
    if (depth > 0) chownSync(directory, user, user)
  }
}

const { files, missingNetworks } = readOrExit(() => platformFiles(readPlatformOptions(args), stored, systemClock.now()))
for (const [path, text] of [...created, ...passed]) {
  write(path, text, 0)
  // The next file is written only when this one survives a loss of power.
  for (const directory of [dirname(join(root, path)), root]) syncDirectory(directory)
}
for (const file of files) {
  write(file.path, file.text, file.user)
  openDirectories(file)
}
// Containers may have mounted the directories, so they stay.
const wanted = new Set(files.map(({ path }) => path))
for (const path of filesBelow('hosts')) if (!wanted.has(path)) rmSync(join(root, path))
for (const { name, subnet, assigned } of missingNetworks) process.stdout.write(`${name} ${subnet} ${assigned}\n`)
