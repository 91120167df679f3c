// Keeps the queue of NOTIFY of every shared Postgres from staying full, so that one tenant can't keep others from notifying.
import type { Clock } from './clock.ts'
import type { Leadership } from './leader.ts'
import { repeat } from './repeat.ts'
import type { Log } from './log.ts'

interface NotificationQueueDeps {
  /** Shared servers, by their region. */
  servers: ReadonlyMap<string, { freeNotificationQueue(): Promise<string[]> }>
  clock: Clock
  log: Pick<Log, 'warn'>
}

const intervalMilliseconds = 5_000

/** Runs while this control plane leads. */
export function freeNotificationQueues({
  servers,
  clock,
  log,
}: NotificationQueueDeps): (leadership: Leadership) => Promise<void> {
  return async ({ lost }) => {
    await Promise.all(
      [...servers].map(([region, server]) => {
        const work = async () => {
          const roles = await server.freeNotificationQueue()
          if (roles.length > 0)
            log.warn(
              { region, roles },
              'the queue of NOTIFY was more than half full: tenants’ oldest transactions were ended',
            )
          return intervalMilliseconds
        }
        return repeat(
          {
            clock,
            work,
            onError: (error) =>
              log.warn({ region, err: error }, 'the queue of NOTIFY could not be measured; it is tried again'),
          },
          lost,
        )
      }),
    )
  }
}
