// Ports: finds free ones, and the program that uses another.
import { once } from 'node:events'
import { readdir, readFile, readlink } from 'node:fs/promises'
import { createServer } from 'node:net'

export async function isFree(port: number, host = '127.0.0.1'): Promise<boolean> {
  const server = createServer()
  try {
    server.listen(port, host)
    await once(server, 'listening')
    return true
  } catch {
    return false
  } finally {
    if (server.listening) {
      server.close()
      await once(server, 'close')
    }
  }
}

/** Returns the first free port from `from` on that is not in `taken`. */
export async function nextFree(from: number, taken: ReadonlySet<number>): Promise<number> {
  for (let port = from; port < 65_536; port++) {
    if (!taken.has(port) && (await isFree(port))) return port
  }
  throw new Error(`No port from ${from} on is free.`)
}

/** Returns `name (process 123)` of the program that listens on a port, if /proc shows it. */
export async function holderOf(port: number): Promise<string | undefined> {
  const inodes = new Set<string>()
  for (const table of ['/proc/net/tcp', '/proc/net/tcp6']) {
    const lines = (await readFile(table, 'utf8').catch(() => '')).split('\n').slice(1)
    for (const line of lines) {
      const fields = line.trim().split(/\s+/)
      const localPort = Number.parseInt(fields[1]?.split(':')[1] ?? '', 16)
      if (localPort === port && fields[3] === '0A' && fields[9] !== undefined) inodes.add(`socket:[${fields[9]}]`)
    }
  }
  if (inodes.size === 0) return undefined
  for (const pid of await readdir('/proc')) {
    if (!/^\d+$/.test(pid)) continue
    const descriptors = await readdir(`/proc/${pid}/fd`).catch(() => [])
    for (const descriptor of descriptors) {
      const target = await readlink(`/proc/${pid}/fd/${descriptor}`).catch(() => '')
      if (inodes.has(target)) {
        const name = (await readFile(`/proc/${pid}/comm`, 'utf8').catch(() => '')).trim()
        return `${name} (process ${pid})`
      }
    }
  }
  return undefined
}
