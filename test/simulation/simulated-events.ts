// What a caller hears of the simulated Engine's events: each late, some twice, some never.
import type { HostEvent } from '#control-plane/engines/container-host.ts'
import type { Chance } from './chance.ts'
import type { ControlPlane } from './control-plane.ts'
import type { Docker } from './docker.ts'
import type { Scheduler } from './scheduler.ts'

export interface Received {
  docker: Docker
  caller: ControlPlane
  chance: Chance
  scheduler: Scheduler
  /** What becomes of one event on its way. */
  eventFaults: () => { missed: number; twice: number }
}

/**
 * @param follow asks the Engine for its events
 * @throws what ended the stream
 */
export async function* receivedEvents(
  { docker, caller, chance, scheduler, eventFaults }: Received,
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
