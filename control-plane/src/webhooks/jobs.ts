// Sends events to the operators' endpoints, each at least once, with retries until it is given up.
import PQueue from 'p-queue'
import type { Clock } from '../platform/clock.ts'
import { repeat } from '../platform/repeat.ts'
import type { Leadership } from '../platform/leader.ts'
import type { Log } from '../platform/log.ts'
import { verdictOf } from './delivery-plan.ts'
import type { Send } from './send-message.ts'
import { messageBody, messageHeaders } from './webhook-message.ts'
import type { DueDelivery, WebhookBacklog } from './webhook.ts'
import type { WebhookOutbox } from './store-outbox.ts'

/** The dependencies of the job that sends operators' webhooks. */
export interface DispatcherDeps {
  outbox: WebhookOutbox
  send: Send
  clock: Clock
  /** Returns a random number in [0, 1), for the spread of retries. */
  random: () => number
  /** Receives the backlog from time to time; undefined when this control plane is no longer the leader. */
  measure: (backlog: WebhookBacklog | undefined) => void
  log: Pick<Log, 'info' | 'warn'>
}

const intervalMilliseconds = 1_000
const measureMilliseconds = 15_000
const evictMilliseconds = 3_600_000
/** The maximum number of messages to one endpoint in a round, so that a slow one does not delay the others for long. */
const maxPerEndpoint = 4
const maxConcurrentSends = 16

/** Creates the job, which runs while this control plane leads. */
export function dispatchWebhooks(deps: DispatcherDeps): (leadership: Leadership) => Promise<void> {
  const { clock, log } = deps
  const dispatcher = createDispatcher(deps)
  return ({ lost }) =>
    repeat(
      {
        clock,
        work: dispatcher.poll,
        onError: (error) => log.warn({ err: error }, 'The webhooks could not be sent. The work is retried.'),
      },
      lost,
    ).finally(() => deps.measure(undefined))
}

export function createDispatcher({ outbox, send, clock, random, measure, log }: DispatcherDeps) {
  let evicted = 0
  let measured = 0

  const deliver = async (delivery: DueDelivery, signal: AbortSignal): Promise<void> => {
    const { event, url, secrets, attempts } = delivery
    const body = messageBody(event)
    const result = await send(url, body, messageHeaders(event.id, body, secrets, clock.now()), signal)
    // The result of an aborted attempt is unknown, so the message is sent again.
    if (signal.aborted) return
    const verdict = verdictOf(result, attempts + 1, random())
    await outbox.record(delivery, result, verdict)
    if (verdict.state === 'dead')
      log.warn(
        { webhook: delivery.endpointId, event: event.id, type: event.type, status: result.status, error: result.error },
        'A webhook message was given up and is not sent again.',
      )
  }

  /**
   * Polls once: dispatches new events and sends all that is due.
   * @returns the milliseconds until the next poll
   */
  const poll = async (signal: AbortSignal): Promise<number> => {
    const eventCount = await outbox.dispatch()
    const due = await outbox.due(maxPerEndpoint)
    const queue = new PQueue({ concurrency: maxConcurrentSends })
    const errors: unknown[] = []
    for (const delivery of due)
      void queue.add(() => deliver(delivery, signal).catch((error: unknown) => errors.push(error)))
    await queue.onIdle()
    if (errors.length > 0) throw errors[0]
    if (clock.now().getTime() - evicted >= evictMilliseconds) {
      evicted = clock.now().getTime()
      await outbox.evictOld()
    }
    if (clock.now().getTime() - measured >= measureMilliseconds) {
      measure(await outbox.backlog())
      measured = clock.now().getTime()
    }
    return eventCount + due.length > 0 ? 0 : intervalMilliseconds
  }

  return { poll }
}
