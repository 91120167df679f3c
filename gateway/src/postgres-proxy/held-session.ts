// A session that its server has admitted, and that may have to wait for a connection slot of the tenant. Until it has one,
// the server's bytes are not sent to the client.
import type { Socket } from 'node:net'
import type { SqlRejection } from './fatal.ts'

/** Receives the decision on a waiting session, once. */
export interface WaitingSession {
  proceed(): void
  reject(rejection: SqlRejection): void
}

interface HeldSessionOptions {
  client: Socket
  server: Socket
  admit: (waiting: WaitingSession) => 'admitted' | 'waits' | SqlRejection
  /** Sends the rejection to the client and ends its connection. */
  reject: (rejection: SqlRejection) => void
}

/**
 * Creates a function that decides for each chunk of the server whether it goes to the client now. `admittedAt` is the
 * position in the chunk at which the server has admitted the client.
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
    const rejectSession = (rejection: SqlRejection) => {
      // PostgreSQL, too, rejects a login with too many sessions only after the password.
      client.write(chunk.subarray(0, admittedAt))
      reject(rejection)
      server.destroy()
    }
    const proceed = () => {
      for (const part of held ?? []) client.write(part)
      held = undefined
      server.resume()
    }
    const outcome = admit({ proceed, reject: rejectSession })
    if (outcome === 'admitted') return true
    if (outcome === 'waits') {
      held = [chunk]
      server.pause()
    } else rejectSession(outcome)
    return false
  }
}
