// Stores console sessions in the control database.
import { randomUUID } from 'node:crypto'
import type { ConsoleSession as SessionRow } from '../../../prisma/client/client.ts'
import { afterPosition, decodeCursor, toPage } from '../platform/cursor.ts'
import type { Database } from '../platform/database.ts'
import { ControlError } from '../platform/errors.ts'
import type { Page, PageRequest } from '../platform/page.ts'
import type { RecordedWrite } from '../platform/recorded-write.ts'
import { isUuid, uuidPattern } from '../platform/uuid.ts'
import { maxSessionMilliseconds, type ConsoleSession } from './console-session.ts'
import { tokenHash } from './session-token.ts'

/** Precision of `seenAt`. A request writes only if the last write is older. */
const seenMilliseconds = 60_000
/** The number of sessions that one key may begin in the longest time of a session. Each adds to the audit log. */
const maxSessionsOfKey = 100
/** Milliseconds after its end for which a session is listed. */
const retentionMilliseconds = 7 * 86_400_000

/** A session to create. */
export interface NewSession {
  token: string
  platformKeyId: string
  /** The time at which the platform key expires; undefined if it does not. */
  keyExpiresAt: Date | undefined
  address: string
  userAgent: string
}

/** Stores console sessions, but only the hashes of their tokens. */
export type ConsoleSessionStore = ReturnType<typeof createConsoleSessionStore>

/** Creates the store of console sessions, on the control database. */
export function createConsoleSessionStore(database: Database, now: () => Date) {
  return {
    /** Finds a session by its token; ended ones too. */
    async find(token: string): Promise<ConsoleSession | undefined> {
      const row = await database.consoleSession.findUnique({ where: { sha256: tokenHash(token) } })
      return row === null ? undefined : toSession(row)
    },

    /** Lists sessions, ended ones too, the oldest first. */
    async list({ limit, cursor }: PageRequest): Promise<Page<ConsoleSession>> {
      const rows = await database.consoleSession.findMany({
        where: cursor === undefined ? {} : afterPosition(decodeCursor(cursor, uuidPattern)),
        orderBy: [{ createdAt: 'asc' }, { id: 'asc' }],
        take: limit + 1,
      })
      return toPage(rows, limit, toSession)
    },

    /** Creates a session, and removes those that ended a week ago or earlier. */
    async create(session: NewSession, { transaction, audit }: RecordedWrite): Promise<ConsoleSession> {
      const at = now()
      const { token, platformKeyId, keyExpiresAt, address, userAgent } = session
      await transaction.consoleSession.deleteMany({
        where: { expiresAt: { lt: new Date(at.getTime() - retentionMilliseconds) } },
      })
      const recent = { platformKeyId, createdAt: { gt: new Date(at.getTime() - maxSessionMilliseconds) } }
      if ((await transaction.consoleSession.count({ where: recent })) >= maxSessionsOfKey)
        throw new ControlError(
          'TOO_MANY_ATTEMPTS',
          `The key has begun ${maxSessionsOfKey} console sessions in the last 12 hours. Use another key, or wait.`,
        )
      const last = at.getTime() + maxSessionMilliseconds
      const row = await transaction.consoleSession.create({
        data: {
          id: randomUUID(),
          platformKeyId,
          sha256: tokenHash(token),
          address,
          userAgent,
          createdAt: at,
          seenAt: at,
          expiresAt: new Date(Math.min(last, keyExpiresAt?.getTime() ?? last)),
        },
      })
      audit({ action: 'console_session.create', target: row.id, detail: { address } })
      return toSession(row)
    },

    /** Records that a session was used, so that it does not end as idle. */
    async seen({ id, seenAt }: ConsoleSession): Promise<void> {
      const at = now()
      if (at.getTime() - seenAt.getTime() < seenMilliseconds) return
      await database.consoleSession.updateMany({ where: { id }, data: { seenAt: at } })
    },

    /** Ends a session; an ended one stays unchanged. @throws ControlError CONSOLE_SESSION_NOT_FOUND */
    async revoke(id: string, { transaction, audit }: RecordedWrite): Promise<ConsoleSession> {
      const row = isUuid(id) ? await transaction.consoleSession.findUnique({ where: { id } }) : null
      if (row === null) throw new ControlError('CONSOLE_SESSION_NOT_FOUND', 'There is no such console session.')
      if (row.revokedAt !== null) return toSession(row)
      audit({ action: 'console_session.revoke', target: id, detail: {} })
      return toSession(await transaction.consoleSession.update({ where: { id }, data: { revokedAt: now() } }))
    },
  }
}

function toSession(row: SessionRow): ConsoleSession {
  const { id, platformKeyId, address, userAgent, createdAt, seenAt, expiresAt, revokedAt } = row
  return { id, platformKeyId, address, userAgent, createdAt, seenAt, expiresAt, revokedAt: revokedAt ?? undefined }
}
