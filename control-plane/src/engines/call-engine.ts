// One question to an engine, for as long as a caller waits for its answer.
import type { Clock } from '../platform/clock.ts'
import { EngineError } from './engine-error.ts'

const timeoutMilliseconds = 5_000

/**
 * Makes calls to an engine for a request of the API, within five seconds.
 * @throws EngineError, ENGINE_UNREACHABLE when the time is over
 */
export async function callEngine<T>(
  clock: Pick<Clock, 'timeout'>,
  request: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const signal = clock.timeout(timeoutMilliseconds)
  try {
    return await request(signal)
  } catch (cause) {
    if (cause instanceof EngineError || !signal.aborted) throw cause
    throw new EngineError('ENGINE_UNREACHABLE', `the engine did not answer within ${timeoutMilliseconds / 1000} s`, {
      cause,
    })
  }
}
