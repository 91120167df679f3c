// One question to an engine, for as long as a caller waits for its answer.
import type { Clock } from '../platform/clock.ts'
import { EngineError } from './engine-error.ts'

const patienceMilliseconds = 5_000

/**
 * Makes calls to an engine for a request of the API, within five seconds.
 * @throws EngineError, ENGINE_UNREACHABLE when the time is over
 */
export async function askEngine<T>(
  clock: Pick<Clock, 'timeout'>,
  ask: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const signal = clock.timeout(patienceMilliseconds)
  try {
    return await ask(signal)
  } catch (cause) {
    if (cause instanceof EngineError || !signal.aborted) throw cause
    throw new EngineError('ENGINE_UNREACHABLE', `the engine did not answer within ${patienceMilliseconds / 1000} s`, {
      cause,
    })
  }
}
