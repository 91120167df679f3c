// The events of the simulated Engine as a caller receives them: each late, some twice, some never.
import type { HostEvent } from '#control-plane/engines/container-host.ts'
import type { Chance } from './chance.ts'
import type { ControlPlane } from './control-plane.ts'
import type { Docker } from './docker.ts'
import type { Scheduler } from './scheduler.ts'

export interface EventOptions {
  docker: Docker
  caller: ControlPlane
  chance: Chance
  scheduler: Scheduler
  /** Returns the probabilities that an event is lost or arrives twice. */
  eventFaults: () => { missed: number; twice: number }
}

/**
 * Yields the events that arrive at a caller.
 * @param follow opens the stream at the Engine
 * @throws Error that ended the stream
 */
export async function* receivedEvents(
  { docker, caller, chance, scheduler, eventFaults }: EventOptions,
  follow: () => Promise<void>,
  installation: string,
  signal: AbortSignal,
): AsyncGenerator<HostEvent> {
  const arrived: HostEvent[] = []
  let wake: (() => void) | undefined
  let failure: Error | undefined
  const put = (event: HostEvent) => {
    arrived.push(event)
    wake?.()
  }
  await follow()
  const stop = docker.listen(
    (event) => {
      if (!caller.isAlive() || event.installation !== installation) return
      const { missed, twice } = eventFaults()
      if (chance.happens(missed)) return
      scheduler.after(chance.between(1, 30), () => put(event))
      if (chance.happens(twice)) scheduler.after(chance.between(1, 3_000), () => put(event))
    },
    (reason) => {
      failure = reason
      wake?.()
    },
  )
  const onAbort = () => wake?.()
  signal.addEventListener('abort', onAbort)
  const isOver = () => failure !== undefined || signal.aborted
  try {
    while (!isOver()) {
      const event = arrived.shift()
      if (event !== undefined) yield event
      else await new Promise<void>((resolve) => (wake = resolve))
    }
    if (failure !== undefined) throw failure
  } finally {
    stop()
    signal.removeEventListener('abort', onAbort)
  }
}
