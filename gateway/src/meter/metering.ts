// All that counts: store, meter, journal, clock and pushes, put together in the order in which they must begin and end.
import { join } from 'node:path'
import { pause } from '@tenantry/contract'
import type { ControlPlane } from '../control-call.ts'
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
  /** Milliseconds since 1970. */
  now: () => number
  /** Milliseconds, monotonic. */
  elapsed: () => number
  newId: () => string
  onError: (error: Error) => void
  /** Milliseconds between pushes. */
  pushInterval?: number
  /** Milliseconds for which the first routes wait for the hour. */
  clockWait?: number
  /** Counters held at most; see CounterStore. */
  counterLimit?: number
}

export interface Metering {
  readonly meter: Meter
  /** Of this start. */
  readonly boot: string
  /** Of earlier starts: those of which counts are still to be acknowledged. */
  readonly unfinished: () => readonly string[]
  /** Begins to push. */
  run(): void
  /** Waits until the hour is known, but for no longer than is fair to those who want to be served. */
  clockKnown(signal: AbortSignal): Promise<void>
  /** Asks for the hour where it was never heard. Never throws, and never takes long. */
  requestHour(): Promise<void>
  /** Pushes the last counts and ends; what was not acknowledged stays in the journal. Nothing may be counted any more. */
  stop(): Promise<void>
}

const defaultCounterLimit = 500_000
const defaultClockWait = 5_000

/** From here on everything that is counted is kept. Never throws for a disk that does not take it. */
export async function openMetering(options: MeteringOptions): Promise<Metering> {
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
  const meter = new Meter({ store, now, elapsed, kept: journal.kept })
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
    boot,
    unfinished: () => pusher.unfinished,
    run() {
      pushes = pusher.run(pushing.signal)
      writes = journal.run(writing.signal)
    },
    async clockKnown(signal) {
      if (clock.known) return
      const known = new AbortController()
      await Promise.race([clock.onceKnown, pause(clockWait, AbortSignal.any([signal, known.signal]))])
      known.abort()
    },
    requestHour: async () => {
      // Who does not answer now is asked with each push.
      if (!clock.known) await pusher.hello()
    },
    async stop() {
      pushing.abort()
      const isAcknowledged = await pushes
      writing.abort()
      await writes
      await journal.close(isAcknowledged)
    },
  }
}

/** A journal that can't be read costs the counts in it, not the service. */
async function earlier(directory: string, source: string, onError: (error: Error) => void): Promise<Replay[]> {
  const replays = await readJournals(directory, source, onError).catch((cause: unknown) => {
    onError(new Error('the journals of earlier starts can not be read', { cause }))
    return []
  })
  const [some, none] = [
    replays.filter(({ counters }) => counters.length > 0),
    replays.filter(({ counters }) => counters.length === 0),
  ]
  for (const replay of none)
    await removeReplay(replay).catch((cause: unknown) => onError(new Error('a journal was not removed', { cause })))
  return some
}
