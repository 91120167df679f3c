// A runtime that vanishes like one whose host loses its power: its connections stay, and another one is neither accepted nor rejected. It
// is a process that is stopped, with a full queue of connections that it has not accepted.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { createInterface } from 'node:readline'
import type { Test } from 'tap'

/** Responds to requests and upgrades of each path that does not end with `/head`. It prints its port, and a line for each request. */
const program = `
const { createServer } = require('node:http')
const server = createServer((request, response) => {
  console.log(request.url)
  request.resume()
  if (!request.url.endsWith('/head')) response.end('from the runtime that returns')
})
server.on('upgrade', (request, socket) => {
  console.log(request.url)
  if (request.url.endsWith('/head')) return
  socket.write('HTTP/1.1 101 Switching Protocols\\r\\nConnection: Upgrade\\r\\nUpgrade: raw\\r\\n\\r\\n')
})
server.listen({ port: 0, host: '127.0.0.1', backlog: 1 }, () => console.log(server.address().port))
`
const connectMilliseconds = 300

export interface VanishingRuntime {
  url: string
  /** Paths of the requests that it has received. */
  seen: string[]
  vanish(): Promise<void>
  /** Lets it continue where it was. */
  return(): void
}

/** Starts the runtime. The end of the test ends it. */
export async function startVanishingRuntime(t: Test): Promise<VanishingRuntime> {
  const child = spawn(process.execPath, ['-e', program], { stdio: ['ignore', 'pipe', 'inherit'] })
  const held: Socket[] = []
  t.teardown(() => {
    child.kill('SIGKILL')
    for (const socket of held) socket.destroy()
  })
  const lines = createInterface(child.stdout)
  const [port] = (await once(lines, 'line')) as [string]
  const seen: string[] = []
  lines.on('line', (line) => seen.push(line))
  /** Opens a connection. @returns whether it was accepted */
  const isAccepted = async (): Promise<boolean> => {
    const socket = connect(Number(port), '127.0.0.1')
    held.push(socket)
    socket.on('error', () => undefined)
    return Promise.race([
      once(socket, 'connect').then(() => true),
      new Promise<boolean>((resolve) => setTimeout(() => resolve(false), connectMilliseconds)),
    ])
  }
  return {
    url: `http://127.0.0.1:${port}`,
    seen,
    async vanish() {
      child.kill('SIGSTOP')
      while (await isAccepted());
    },
    return() {
      for (const socket of held.splice(0)) socket.destroy()
      child.kill('SIGCONT')
    },
  }
}
