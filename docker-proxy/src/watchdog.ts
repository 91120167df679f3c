// Starts the platform's own containers again after a `docker kill`, which the Engine takes for an operator's stop: it
// applies no restart policy to it. Containers that `docker stop` ended stay stopped.
import { setTimeout as delay } from 'node:timers/promises'
import { pause } from '@tenantry/contract'
import { Type } from 'typebox'
import { Value } from 'typebox/value'
import type { EngineSocket } from './engine-socket.ts'
import { jsonLines } from './event-stream.ts'
import { StoppedContainers } from './stopped-containers.ts'

interface WatchdogOptions {
  engine: EngineSocket
  /** Name of the Compose project whose containers are watched. */
  project: string
  log: Log
  /** Milliseconds of a clock that only goes forward. */
  now: () => number
  /** Between the end of a container and its start: an operator's `docker stop` and `docker rm` report theirs within it. */
  graceMs?: number
}

/** As pino's. */
export interface Log {
  info(fields: object, message: string): void
  warn(fields: object, message: string): void
}

/**
 * Nobody listens at the Engine's socket. In a container that is final, even when the Engine is back: a mounted socket stays
 * the old one's, until the container is started again.
 */
export class EngineGone extends Error {
  override readonly name = 'EngineGone'
}

/** Of the oldest Engine that is supported. */
const version = 'v1.41'
const callMs = 60_000
const pollMs = 1_000
const defaultGraceMs = 5_000

const Event = Type.Object({
  Action: Type.Union([Type.Literal('start'), Type.Literal('stop'), Type.Literal('die'), Type.Literal('destroy')]),
  Actor: Type.Object({ ID: Type.String({ pattern: '^[0-9a-f]{64}$' }) }),
})

/** Returns when `signal` is aborted. @throws EngineGone */
export async function watchContainers(options: WatchdogOptions, signal: AbortSignal): Promise<void> {
  const { engine, project, log, now, graceMs = defaultGraceMs } = options
  const stopped = new StoppedContainers()
  const isEnding = () => signal.aborted
  while (!isEnding()) {
    const round = new AbortController()
    const both = AbortSignal.any([signal, round.signal])
    try {
      await Promise.race([follow(stopped, both), startOverdue(stopped, both)])
    } catch (cause) {
      if (isGone(cause)) throw new EngineGone("nobody listens at the Docker Engine's socket", { cause })
      if (!isEnding()) log.warn({ err: cause }, 'the watch of the containers broke off; it begins again')
    } finally {
      round.abort()
    }
    await pause(pollMs, signal)
  }

  /** Ends with the Engine's stream. The Engine repeats what it remembers, so that nothing between two streams is missed. */
  async function follow(containers: StoppedContainers, until: AbortSignal): Promise<void> {
    const labels = [`com.docker.compose.project=${project}`, 'com.docker.compose.oneoff=False']
    const filters = JSON.stringify({ type: ['container'], event: ['start', 'stop', 'die', 'destroy'], label: labels })
    const response = await engine.open(
      { method: 'GET', path: `/${version}/events?since=1&filters=${encodeURIComponent(filters)}` },
      until,
    )
    if (response.statusCode !== 200)
      throw new Error(`the Docker Engine answered ${response.statusCode ?? 'nothing'} to the request for events`)
    for await (const event of jsonLines(response)) {
      if (Value.Check(Event, event)) containers.observe({ id: event.Actor.ID, action: event.Action }, now())
    }
  }

  async function startOverdue(containers: StoppedContainers, until: AbortSignal): Promise<void> {
    for (;;) {
      for (const id of containers.overdue(now(), graceMs)) await start(containers, id, until)
      await delay(pollMs, undefined, { signal: until })
    }
  }

  /** A start that fails is tried again after the same time. */
  async function start(containers: StoppedContainers, id: string, until: AbortSignal): Promise<void> {
    const abortable = AbortSignal.any([until, AbortSignal.timeout(callMs)])
    const { status, body } = await engine.request(
      { method: 'POST', path: `/${version}/containers/${id}/start` },
      abortable,
    )
    if (status === 204) log.info({ container: id }, 'started a container that had been killed')
    // 304: it runs, or its restart policy is about to start it. 404: it is gone.
    if (status === 204 || status === 304 || status === 404) containers.evict(id)
    else {
      containers.observe({ id, action: 'die' }, now())
      log.warn({ container: id, status, response: body }, "a container that had been killed can't be started")
    }
  }
}

function isGone(cause: unknown): boolean {
  return cause instanceof Error && 'code' in cause && (cause.code === 'ECONNREFUSED' || cause.code === 'ENOENT')
}
