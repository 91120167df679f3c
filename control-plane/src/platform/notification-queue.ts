// Keeps the queue of NOTIFY of every shared Postgres from filling, so that one tenant cannot block the notifications of
// others.
import type { Clock } from './clock.ts'
import type { Leadership } from './leader.ts'
import { repeat } from './repeat.ts'
import type { Log } from './log.ts'

interface NotificationQueueDeps {
  /** Shared servers, by region. */
  servers: ReadonlyMap<string, { freeNotificationQueue(): Promise<string[]> }>
  clock: Clock
  log: Pick<Log, 'warn'>
}

const intervalMilliseconds = 5_000

/** Creates the leader's job that frees the queues. */
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
              "The queue of NOTIFY was more than half full. The tenants' oldest transactions were ended.",
            )
          return intervalMilliseconds
        }
        return repeat(
          {
            clock,
            work,
            onError: (error) =>
              log.warn(
                { region, err: error },
                'The queue of NOTIFY could not be measured. The measurement is retried.',
              ),
          },
          lost,
        )
      }),
    )
  }
}
