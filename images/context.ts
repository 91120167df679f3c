// Builds a context: files and links with fixed times and owners, as one tar stream that is identical for the same content.
import { createHash } from 'node:crypto'
import { lstat, readFile, readdir } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { pack } from 'tar-stream'

/** A file or link of a build context. `path` is relative, with slashes. */
export type Entry = { path: string; content: Buffer; isExecutable: boolean } | { path: string; target: string }

/**
 * Returns the file, or all files below the directory, under a path of the context.
 * @param wanted decides by the path below `source`; directories named `node_modules` are never entered
 */
export async function entriesOf(
  source: string,
  path: string,
  wanted: (below: string) => boolean = () => true,
): Promise<Entry[]> {
  const found: Entry[] = []
  const poll = async (below: string): Promise<void> => {
    const at = join(source, below)
    const about = await lstat(at)
    if (about.isDirectory()) {
      for (const name of await readdir(at)) if (name !== 'node_modules') await poll(join(below, name))
    } else if (about.isFile() && wanted(below)) {
      found.push({ path: join(path, below), content: await readFile(at), isExecutable: (about.mode & 0o100) !== 0 })
    }
  }
  await poll('')
  return found
}

/** Returns the entries as a tar stream. @throws Error if a path occurs twice */
export function tarOf(entries: readonly Entry[]): Readable {
  const sorted = [...entries].sort((a, b) => (a.path < b.path ? -1 : 1))
  const owned = { mtime: new Date(0), uid: 0, gid: 0 }
  const tar = pack()
  const written = new Set<string>()
  // Directories without an entry get rights that depend on the engine.
  const addDirectory = (path: string): void => {
    if (path === '.' || written.has(path)) return
    addDirectory(dirname(path))
    written.add(path)
    tar.entry({ ...owned, name: path, type: 'directory', mode: 0o755 })
  }
  for (const entry of sorted) {
    if (written.has(entry.path)) throw new Error(`The build context contains ${entry.path} twice.`)
    addDirectory(dirname(entry.path))
    written.add(entry.path)
    if ('target' in entry)
      tar.entry({ ...owned, name: entry.path, type: 'symlink', linkname: entry.target, mode: 0o777 })
    else tar.entry({ ...owned, name: entry.path, mode: entry.isExecutable ? 0o755 : 0o644 }, entry.content)
  }
  tar.finalize()
  return Readable.from(tar, { objectMode: false })
}

/** Returns twelve hexadecimal digits that are the same for the same context. */
export async function hashOf(entries: readonly Entry[]): Promise<string> {
  const hash = createHash('sha256').setEncoding('hex')
  await pipeline(tarOf(entries), hash)
  return String(hash.read()).slice(0, 12)
}
