// Assembles the metering: store, meter, journal, clock and pushes, which must begin and end in a certain order.
import { join } from 'node:path'
import { pause } from '@tenantry/contract'
import type { ControlPlane } from '../control-call.ts'
import { createRequestTotals } from '../monitor/request-totals.ts'
import { ControlClock } from './control-clock.ts'
import { CounterStore } from './counter-store.ts'
import { Journal } from './journal/journal.ts'
import { readJournals, removeReplay, type Replay } from './journal/replay.ts'
import { Meter } from './meter.ts'
import { UsagePusher } from './usage-pusher.ts'

interface MeteringOptions extends ControlPlane {
  /** The gateway's own directory, and its stable name. */
  data: string
  source: string
  /** Returns milliseconds since 1970. */
  now: () => number
  /** Returns monotonic milliseconds. */
  elapsed: () => number
  newId: () => string
  onError: (error: Error) => void
  /** Milliseconds between pushes. */
  pushInterval?: number
  /** Milliseconds for which the first routes wait for the hour. */
  clockWait?: number
  /** The maximum number of counters; see CounterStore. */
  counterLimit?: number
}

const defaultCounterLimit = 500_000
const defaultClockWait = 5_000

/** The metering of a gateway. */
export type Metering = Awaited<ReturnType<typeof openMetering>>

/** Opens the metering, which stores everything counted from now on. Never throws for a disk that cannot be written. */
export async function openMetering(options: MeteringOptions) {
  const {
    data,
    source,
    now,
    elapsed,
    onError,
    pushInterval,
    counterLimit = defaultCounterLimit,
    clockWait = defaultClockWait,
  } = options
  const { controlUrl, internalToken, fetch } = options
  const directory = join(data, 'journal')
  const boot = options.newId()
  const clock = new ControlClock({ now, elapsed, file: join(data, 'control-clock.json'), onError })
  await clock.load()
  const store = new CounterStore(clock.now, counterLimit)
  const replays = await earlier(directory, source, onError)
  const journal = new Journal({ directory, source, boot, store, elapsed, onError })
  const totals = createRequestTotals()
  const meter = new Meter({ store, now, elapsed, whenWritten: journal.whenWritten, totals })
  const pusher = new UsagePusher({
    control: { controlUrl, internalToken, fetch },
    source,
    boot,
    store,
    meter,
    clock,
    replays,
    elapsed,
    onError,
    ...(pushInterval === undefined ? {} : { interval: pushInterval }),
  })
  await pusher.hello()
  await journal.start()
  const pushing = new AbortController()
  const writing = new AbortController()
  let pushes = Promise.resolve(false)
  let writes = Promise.resolve()
  return {
    meter,
    /** The requests of all tenants together, for the metrics. */
    totals,
    /** Returns milliseconds since 1970 by the control plane's clock, as its last response reported it. */
    controlNow: clock.now,
    /** The ID of this start. */
    boot,
    /** Lists the IDs of earlier starts whose counts are not all acknowledged. */
    unfinished: (): readonly string[] => pusher.unfinished,
    /** Begins to push. */
    run(): void {
      pushes = pusher.run(pushing.signal)
      writes = journal.run(writing.signal)
    },
    /** Waits until the hour is known, but no longer than `clockWait`, because clients wait to be served. */
    async clockKnown(signal: AbortSignal): Promise<void> {
      if (clock.known) return
      const known = new AbortController()
      await Promise.race([clock.whenKnown, pause(clockWait, AbortSignal.any([signal, known.signal]))])
      known.abort()
    },
    /** Requests the hour when it was never received. Never throws, and never takes long. */
    requestHour: async (): Promise<void> => {
      // After a failure, each push requests it again.
      if (!clock.known) await pusher.hello()
    },
    /** Pushes the last counts and ends. Unacknowledged counts stay in the journal. Nothing may be counted any more. */
    async stop(): Promise<void> {
      pushing.abort()
      const isAcknowledged = await pushes
      writing.abort()
      await writes
      await journal.close(isAcknowledged)
    },
  }
}

/** Reads the journals of earlier starts. An unreadable journal loses its counts but does not stop the service. */
async function earlier(directory: string, source: string, onError: (error: Error) => void): Promise<Replay[]> {
  const replays = await readJournals(directory, source, onError).catch((cause: unknown) => {
    onError(new Error('The journals of earlier starts cannot be read.', { cause }))
    return []
  })
  const [withCounts, withoutCounts] = [
    replays.filter(({ counters }) => counters.length > 0),
    replays.filter(({ counters }) => counters.length === 0),
  ]
  for (const replay of withoutCounts)
    await removeReplay(replay).catch((cause: unknown) =>
      onError(new Error('A journal could not be removed.', { cause })),
    )
  return withCounts
}
