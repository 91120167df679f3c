// Restarts the platform's own containers after a `docker kill`, which the Engine treats as an operator's stop, without
// a restart policy. Containers that `docker stop` ended stay stopped.
import { setTimeout as delay } from 'node:timers/promises'
import { pause } from '@tenantry/contract'
import { Type } from 'typebox'
import { Value } from 'typebox/value'
import type { EngineSocket } from './engine-socket.ts'
import { jsonLines } from './event-stream.ts'
import { EndedContainers } from './ended-containers.ts'

interface WatchdogOptions {
  engine: EngineSocket
  /** Name of the Compose project of the watched containers. */
  project: string
  log: Log
  /** Returns milliseconds of a monotonic clock. */
  now: () => number
  /** Delay between the end of a container and its start, in which `docker stop` and `docker rm` report their events. */
  graceMs?: number
}

/** A log, as pino provides it. */
export interface Log {
  info(fields: object, message: string): void
  warn(fields: object, message: string): void
}

/**
 * Nothing listens at the Engine's socket. A container cannot recover from it, even if the Engine is back: its mounted
 * socket is the old one until the container restarts.
 */
export class EngineGone extends Error {
  override readonly name = 'EngineGone'
}

/** API version of the oldest supported Engine. */
const version = 'v1.41'
const callMs = 60_000
const pollMs = 1_000
const defaultGraceMs = 5_000

const Event = Type.Object({
  Action: Type.Union([Type.Literal('start'), Type.Literal('stop'), Type.Literal('die'), Type.Literal('destroy')]),
  Actor: Type.Object({ ID: Type.String({ pattern: '^[0-9a-f]{64}$' }) }),
})

/** Watches until `signal` aborts. @throws EngineGone */
export async function watchContainers(options: WatchdogOptions, signal: AbortSignal): Promise<void> {
  const { engine, project, log, now, graceMs = defaultGraceMs } = options
  const ended = new EndedContainers()
  const isEnding = () => signal.aborted
  while (!isEnding()) {
    const round = new AbortController()
    const both = AbortSignal.any([signal, round.signal])
    try {
      await Promise.race([follow(ended, both), startOverdue(ended, both)])
    } catch (cause) {
      if (isGone(cause)) throw new EngineGone("Nothing listens at the Docker Engine's socket.", { cause })
      if (!isEnding()) log.warn({ err: cause }, 'The watch of the containers was interrupted and is retried.')
    } finally {
      round.abort()
    }
    await pause(pollMs, signal)
  }

  /**
   * Follows events until the Engine's stream ends. The Engine repeats stored events, so that none between two streams
   * is missed.
   */
  async function follow(containers: EndedContainers, until: AbortSignal): Promise<void> {
    const labels = [`com.docker.compose.project=${project}`, 'com.docker.compose.oneoff=False']
    const filters = JSON.stringify({ type: ['container'], event: ['start', 'stop', 'die', 'destroy'], label: labels })
    const response = await engine.open(
      { method: 'GET', path: `/${version}/events?since=1&filters=${encodeURIComponent(filters)}` },
      until,
    )
    if (response.statusCode !== 200)
      throw new Error(
        `The Docker Engine responded with ${response.statusCode ?? 'no status'} to the request for events.`,
      )
    for await (const event of jsonLines(response)) {
      if (Value.Check(Event, event)) containers.observe({ id: event.Actor.ID, action: event.Action }, now())
    }
  }

  async function startOverdue(containers: EndedContainers, until: AbortSignal): Promise<void> {
    for (;;) {
      for (const id of containers.overdue(now(), graceMs)) await start(containers, id, until)
      await delay(pollMs, undefined, { signal: until })
    }
  }

  /** Starts a container. A failed start is retried after the same delay. */
  async function start(containers: EndedContainers, id: string, until: AbortSignal): Promise<void> {
    const bounded = AbortSignal.any([until, AbortSignal.timeout(callMs)])
    const { status, body } = await engine.request(
      { method: 'POST', path: `/${version}/containers/${id}/start` },
      bounded,
    )
    if (status === 204) log.info({ container: id }, 'A killed container was started.')
    // 304: it runs, or its restart policy is about to start it. 404: it no longer exists.
    if (status === 204 || status === 304 || status === 404) containers.evict(id)
    else {
      containers.observe({ id, action: 'die' }, now())
      log.warn(
        { container: id, status, response: body },
        'A killed container could not be started. The start is retried.',
      )
    }
  }
}

function isGone(cause: unknown): boolean {
  return cause instanceof Error && 'code' in cause && (cause.code === 'ECONNREFUSED' || cause.code === 'ENOENT')
}
