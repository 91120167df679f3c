// A server that accepts connections and never responds, as one may that is just ending, holds no work up.
import { once } from 'node:events'
import { createServer, type AddressInfo, type Socket } from 'node:net'
import t from 'tap'
import { HomeDatabases } from '#control-plane/homes/home-databases.ts'

t.test('Work on a server that never responds ends with an error', async (t) => {
  const sockets: Socket[] = []
  const server = createServer((socket) => sockets.push(socket.on('error', () => undefined)))
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const { port } = server.address() as AddressInfo
  const homes = new HomeDatabases(`postgresql://postgres:secret@127.0.0.1:${port}/postgres`, [])
  const works: (() => Promise<unknown>)[] = [
    () => homes.sqlLogins([]),
    () => homes.changedLogins(undefined),
    () => homes.in('homes').prepare(() => undefined),
  ]
  await Promise.all(works.map((work) => t.rejects(work, { message: /timeout/ })))
  for (const socket of sockets) socket.destroy()
  server.close()
  await homes.close()
})
