// Restarts the platform's own containers after a `docker kill`, which the Engine treats as an operator's stop, without
// a restart policy, and those that the Engine could not start, for example because a network of a swarm was not there yet after a
// boot. Containers that `docker stop` ended stay stopped.
import { setTimeout as delay } from 'node:timers/promises'
import { pause } from '@tenantry/contract'
import { Type, type Static, type TSchema } from 'typebox'
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
  /** Delay between two checks whether the Engine failed to start a container. */
  checkMs?: number
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
const defaultCheckMs = 10_000

const Event = Type.Object({
  Action: Type.Union([Type.Literal('start'), Type.Literal('stop'), Type.Literal('die'), Type.Literal('destroy')]),
  Actor: Type.Object({ ID: Type.String({ pattern: '^[0-9a-f]{64}$' }) }),
})

const Containers = Type.Array(Type.Object({ Id: Type.String({ pattern: '^[0-9a-f]{64}$' }) }))
/** A container that does not run, and the Engine's error if its last start failed. */
const Stopped = Type.Object({
  State: Type.Object({ Running: Type.Literal(false), Error: Type.String({ minLength: 1 }) }),
})

/** Watches until `signal` aborts. @throws EngineGone */
export async function watchContainers(options: WatchdogOptions, signal: AbortSignal): Promise<void> {
  const { engine, project, log, now, graceMs = defaultGraceMs, checkMs = defaultCheckMs } = options
  const labels = [`com.docker.compose.project=${project}`, 'com.docker.compose.oneoff=False']
  const ended = new EndedContainers()
  const isEnding = () => signal.aborted
  while (!isEnding()) {
    const round = new AbortController()
    const both = AbortSignal.any([signal, round.signal])
    try {
      await Promise.race([follow(ended, both), startOverdue(ended, both), startFailed(ended, both)])
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
      for (const id of containers.overdue(now(), graceMs))
        // A failed start is retried after the same delay.
        if (!(await start(containers, id, until))) containers.observe({ id, action: 'die' }, now())
      await delay(pollMs, undefined, { signal: until })
    }
  }

  /**
   * Starts containers whose last start has failed, at each check until it succeeds or an operator removes the container. The Engine
   * itself does not repeat such a start, and does not report a `docker stop` of a container that does not run.
   */
  async function startFailed(containers: EndedContainers, until: AbortSignal): Promise<void> {
    const filters = encodeURIComponent(JSON.stringify({ label: labels, status: ['created', 'exited'] }))
    for (;;) {
      for (const { Id: id } of await read(Containers, `/containers/json?all=true&filters=${filters}`, until)) {
        const found = await request('GET', `/containers/${id}/json`, until)
        if (Value.Check(Stopped, found.body)) await start(containers, id, until)
      }
      await delay(checkMs, undefined, { signal: until })
    }
  }

  async function read<T extends TSchema>(schema: T, path: string, until: AbortSignal): Promise<Static<T>> {
    const { status, body } = await request('GET', path, until)
    if (status === 200 && Value.Check(schema, body)) return body
    throw new Error(`The Docker Engine responded with ${status} to GET ${path.slice(0, 50)}.`)
  }

  function request(method: string, path: string, until: AbortSignal) {
    const bounded = AbortSignal.any([until, AbortSignal.timeout(callMs)])
    return engine.request({ method, path: `/${version}${path}` }, bounded)
  }

  /** Starts a container. @returns false if the start has failed */
  async function start(containers: EndedContainers, id: string, until: AbortSignal): Promise<boolean> {
    const { status, body } = await request('POST', `/containers/${id}/start`, until)
    if (status === 204) log.info({ container: id }, 'A container was started.')
    // 304: it runs, or its restart policy is about to start it. 404: it no longer exists.
    const isDone = status === 204 || status === 304 || status === 404
    if (isDone) containers.evict(id)
    else log.warn({ container: id, status, response: body }, 'A container could not be started. The start is retried.')
    return isDone
  }
}

function isGone(cause: unknown): boolean {
  return cause instanceof Error && 'code' in cause && (cause.code === 'ECONNREFUSED' || cause.code === 'ENOENT')
}
