// A session whose server has let it in, and that may have to wait for its place among the tenant's connections: until it has
// one, nothing of what the server says goes on to the client.
import type { Socket } from 'node:net'
import type { SqlRejection } from './fatal.ts'

/** Told once, of a session that waits. */
export interface WaitingSession {
  goOn(): void
  refused(rejection: SqlRejection): void
}

interface HeldSessionOptions {
  client: Socket
  server: Socket
  admit: (waiting: WaitingSession) => 'admitted' | 'waits' | SqlRejection
  /** Says it to the client and ends its connection. */
  reject: (rejection: SqlRejection) => void
}

/**
 * @returns asked of every piece of the server's bytes whether it goes to the client now; `admittedAt` is where in it the server
 * has said that it lets the client in
 */
export function heldSession({
  client,
  server,
  admit,
  reject,
}: HeldSessionOptions): (chunk: Buffer, admittedAt: number | undefined) => boolean {
  let held: Buffer[] | undefined
  return (chunk, admittedAt) => {
    if (held !== undefined) {
      held.push(chunk)
      return false
    }
    if (admittedAt === undefined) return true
    const rejected = (rejection: SqlRejection) => {
      // As PostgreSQL does when a login has as many sessions as it may: after the password.
      client.write(chunk.subarray(0, admittedAt))
      reject(rejection)
      server.destroy()
    }
    const goOn = () => {
      for (const part of held ?? []) client.write(part)
      held = undefined
      server.resume()
    }
    const outcome = admit({ goOn, refused: rejected })
    if (outcome === 'admitted') return true
    if (outcome === 'waits') {
      held = [chunk]
      server.pause()
    } else rejected(outcome)
    return false
  }
}
