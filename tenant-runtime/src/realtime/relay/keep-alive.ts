// Ends a link between two runtimes when the other one has become silent.
import type { WebSocket } from 'ws'
import { encodeText } from './relay-frame.ts'

const beatMs = 1_000
/** The number of beats without a message of the other side after which the link ends. */
const maxSilentBeats = 4
const alive = encodeText({ kind: 'alive' })

/** Sends a heartbeat each second until the socket is closed, and closes it when no message arrives for four of them. */
export function keepAlive(socket: WebSocket): void {
  // It counts beats instead of time: a process that was suspended first reads the messages that have arrived meanwhile.
  let silent = 0
  socket.on('message', () => (silent = 0))
  const timer = setInterval(() => {
    silent++
    if (silent > maxSilentBeats) socket.terminate()
    else socket.send(alive)
  }, beatMs)
  socket.on('close', () => clearInterval(timer))
}
