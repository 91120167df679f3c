// The end of an answer whose request is still arriving: a connection closed on bytes nobody read is reset by the
// kernel, and the answer with it.
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Limits } from '../limits.ts'

/**
 * Ends the answer, and reads on what is left of the request, up to a limit.
 * @param last the last piece of the body
 * @param isComplete whether the client can tell by Content-Length that it has all: then the connection's end can wait
 */
export function endBeforeRequest(
  response: ServerResponse,
  last: Buffer | undefined,
  isComplete: boolean,
  limits: Limits,
): void {
  if (response.shouldKeepAlive || !isComplete) {
    response.end(last)
    readOn(response.req, limits, () => undefined)
    return
  }
  // The client wants the connection closed after the answer: first let it get rid of the rest.
  if (last !== undefined) response.write(last)
  readOn(response.req, limits, () => response.end())
}

/** A body longer than the limit, or one that stops coming, costs the connection. */
function readOn(request: IncomingMessage, limits: Limits, onEnd: () => void): void {
  let left = limits.remainingBytes
  const { socket } = request
  const giveUp = () => socket.destroy()
  const timer = setTimeout(giveUp, limits.bodyIdleTimeout)
  // A request whose answer has ended hears nothing of its connection any more.
  const over = () => {
    clearTimeout(timer)
    socket.off('close', over)
  }
  request.on('data', (chunk: Buffer) => {
    left -= chunk.length
    timer.refresh()
    if (left < 0) giveUp()
  })
  request.on('end', onEnd)
  request.on('close', over)
  socket.on('close', over)
  request.resume()
}
