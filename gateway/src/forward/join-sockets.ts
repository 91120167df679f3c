// Joins two connections: passes bytes both ways unchanged, at the pace of the slower side, until either ends.
import type { Socket } from 'node:net'

const probeMilliseconds = 60_000

/**
 * Joins two sockets.
 * @param onToClient decides for each chunk whether it goes to the client; false destroys both sides
 */
export function joinSockets(client: Socket, server: Socket, onToClient: (chunk: Buffer) => boolean): void {
  for (const socket of [client, server]) {
    socket.setTimeout(0)
    socket.setNoDelay(true)
    socket.setKeepAlive(true, probeMilliseconds)
  }
  pass(client, server, () => true)
  pass(server, client, onToClient)
}

/** Passes bytes, backpressure and the end from one side to the other. */
function pass(from: Socket, to: Socket, passes: (chunk: Buffer) => boolean): void {
  from.on('data', (chunk: Buffer) => {
    if (passes(chunk) && !to.write(chunk)) from.pause()
  })
  to.on('drain', () => from.resume())
  from.on('end', () => to.end())
  from.on('error', () => to.destroy())
  from.on('close', () => to.destroySoon())
  from.resume()
}
