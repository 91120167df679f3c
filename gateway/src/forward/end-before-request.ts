// The end of a response whose request is still arriving. The kernel resets a connection that is closed with unread bytes,
// and the client would lose the response.
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { ByteTurns } from '@tenantry/contract'
import type { Limits } from '../limits.ts'
import { ArrivedBytes } from './arrived-bytes.ts'

export interface RemainingRequest {
  /** Whether the client knows by Content-Length that it has the whole response, so that the connection's end can wait. */
  isComplete: boolean
  limits: Limits
  /** The turns in which the rest of rejected requests is read. */
  turns: ByteTurns
  /** The tenant in whose turn the request is read. */
  tenantId: string
}

/**
 * Ends the response, and reads the remaining request up to a limit.
 * @param last the last chunk of the body
 */
export function endBeforeRequest(
  response: ServerResponse,
  last: Buffer | undefined,
  remaining: RemainingRequest,
): void {
  if (response.shouldKeepAlive || !remaining.isComplete) {
    response.end(last)
    readRemaining(response.req, remaining, () => undefined)
    return
  }
  // The client wants the connection closed after the response, so it may finish sending first.
  if (last !== undefined) response.write(last)
  readRemaining(response.req, remaining, () => response.end())
}

/** Reads the remaining body. One that exceeds the limit or stops arriving destroys the connection. */
function readRemaining(
  request: IncomingMessage,
  { limits, turns, tenantId }: RemainingRequest,
  onEnd: () => void,
): void {
  let remaining = limits.remainingBytes
  const { socket } = request
  const arrivedBytes = new ArrivedBytes(socket)
  const giveUp = () => socket.destroy()
  const timer = setTimeout(giveUp, limits.bodyIdleTimeout)
  let leaveTurn = () => {}
  // A request whose response has ended receives no events of its connection.
  const over = () => {
    clearTimeout(timer)
    leaveTurn()
    socket.off('close', over)
  }
  request.on('data', (chunk: Buffer) => {
    const { arrived, due } = arrivedBytes.chunk(chunk.length)
    remaining -= arrived
    timer.refresh()
    if (remaining < 0 || arrivedBytes.isMostlyFraming) giveUp()
    turns.add(tenantId, due)
    if (!turns.isOver(tenantId)) return
    request.pause()
    leaveTurn = turns.wait(tenantId, () => request.resume())
  })
  request.on('end', onEnd)
  request.on('close', over)
  socket.on('close', over)
  request.resume()
}
