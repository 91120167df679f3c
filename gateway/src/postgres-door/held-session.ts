// A session whose server has let it in, and that may have to wait for its place among the tenant's connections: until it has
// one, nothing of what the server says goes on to the client.
import type { Socket } from 'node:net'
import type { SqlRefusal } from './fatal.ts'

/** Told once, of a session that waits. */
export interface WaitingSession {
  goOn(): void
  refused(refusal: SqlRefusal): void
}

interface HeldSessionOptions {
  client: Socket
  server: Socket
  letIn: (waiting: WaitingSession) => 'let in' | 'waits' | SqlRefusal
  /** Says it to the client and ends its connection. */
  refuse: (refusal: SqlRefusal) => void
}

/**
 * @returns asked of every piece of the server's bytes whether it goes to the client now; `letInAt` is where in it the server
 * has said that it lets the client in
 */
export function heldSession({
  client,
  server,
  letIn,
  refuse,
}: HeldSessionOptions): (chunk: Buffer, letInAt: number | undefined) => boolean {
  let held: Buffer[] | undefined
  return (chunk, letInAt) => {
    if (held !== undefined) {
      held.push(chunk)
      return false
    }
    if (letInAt === undefined) return true
    const refused = (refusal: SqlRefusal) => {
      // As PostgreSQL does when a login has as many sessions as it may: after the password.
      client.write(chunk.subarray(0, letInAt))
      refuse(refusal)
      server.destroy()
    }
    const goOn = () => {
      for (const piece of held ?? []) client.write(piece)
      held = undefined
      server.resume()
    }
    const outcome = letIn({ goOn, refused })
    if (outcome === 'let in') return true
    if (outcome === 'waits') {
      held = [chunk]
      server.pause()
    } else refused(outcome)
    return false
  }
}
