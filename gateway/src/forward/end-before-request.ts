// The end of a response whose request is still arriving. The kernel resets a connection that is closed with unread bytes,
// and the client would lose the response.
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Limits } from '../limits.ts'

/**
 * Ends the response, and reads the remaining request up to a limit.
 * @param last the last chunk of the body
 * @param isComplete whether the client knows by Content-Length that it has the whole body, so that the connection's end can
 * wait
 */
export function endBeforeRequest(
  response: ServerResponse,
  last: Buffer | undefined,
  isComplete: boolean,
  limits: Limits,
): void {
  if (response.shouldKeepAlive || !isComplete) {
    response.end(last)
    readRemaining(response.req, limits, () => undefined)
    return
  }
  // The client wants the connection closed after the response, so it may finish sending first.
  if (last !== undefined) response.write(last)
  readRemaining(response.req, limits, () => response.end())
}

/** Reads the remaining body. One that exceeds the limit or stops arriving destroys the connection. */
function readRemaining(request: IncomingMessage, limits: Limits, onEnd: () => void): void {
  let remaining = limits.remainingBytes
  const { socket } = request
  const giveUp = () => socket.destroy()
  const timer = setTimeout(giveUp, limits.bodyIdleTimeout)
  // A request whose response has ended receives no events of its connection.
  const over = () => {
    clearTimeout(timer)
    socket.off('close', over)
  }
  request.on('data', (chunk: Buffer) => {
    remaining -= chunk.length
    timer.refresh()
    if (remaining < 0) giveUp()
  })
  request.on('end', onEnd)
  request.on('close', over)
  socket.on('close', over)
  request.resume()
}
