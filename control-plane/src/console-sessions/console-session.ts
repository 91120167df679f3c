// Sessions of the web console, and how long they are valid.

/** A session of the web console. It acts with the rights of the platform key with which the operator signed in. */
export interface ConsoleSession {
  id: string
  platformKeyId: string
  /** Address and program of the client at sign-in. */
  address: string
  userAgent: string
  createdAt: Date
  /** The last request with the session, exact to a minute. */
  seenAt: Date
  /** The time at which the session ends even if it is in use. */
  expiresAt: Date
  revokedAt: Date | undefined
}

/** Milliseconds after sign-in at which a session ends. */
export const maxSessionMilliseconds = 12 * 3_600_000
/** Milliseconds without a request after which a session ends. */
export const idleSessionMilliseconds = 2 * 3_600_000

/** Returns the time at which a session ends if it makes no further request. */
export function idleExpiry({ seenAt, expiresAt }: ConsoleSession): Date {
  return new Date(Math.min(seenAt.getTime() + idleSessionMilliseconds, expiresAt.getTime()))
}

/** Whether a session can be used. */
export function isLive(session: ConsoleSession, now: Date): boolean {
  return session.revokedAt === undefined && now < idleExpiry(session)
}
