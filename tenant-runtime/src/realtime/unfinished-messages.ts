// Reserves memory for messages that have arrived in part, so that clients which never finish theirs cannot use up the memory.
import type { Socket } from 'node:net'
import type { WebSocket } from 'ws'
import type { Reservation } from '../bounds/index.ts'

/** The bytes of a connection that need no reservation. */
const freeBytes = 64 * 1024

/**
 * Watches the bytes that arrive between two messages.
 * @param open opens a reservation
 * @param onFull called when there is no memory for them
 */
export function watchUnfinishedMessages(
  webSocket: WebSocket,
  socket: Socket,
  open: () => Reservation,
  onFull: () => void,
): void {
  let pending = 0
  let reservation: Reservation | undefined
  const release = () => {
    pending = 0
    reservation?.release()
    reservation = undefined
  }
  // It counts a chunk before the WebSocket finds the messages in it.
  socket.prependListener('data', (chunk: Buffer) => {
    pending += chunk.length
    if (pending <= freeBytes) return
    reservation ??= open()
    if (reservation.take(pending - reservation.bytes) !== undefined) onFull()
  })
  webSocket.on('message', release)
  webSocket.on('close', release)
}
