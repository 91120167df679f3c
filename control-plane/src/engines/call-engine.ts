// One call of an engine, with the time limit of a request of the API.
import type { Clock } from '../platform/clock.ts'
import { EngineError } from './engine-error.ts'

const timeoutMilliseconds = 5_000

/**
 * Makes calls of an engine for a request of the API, within five seconds.
 * @throws EngineError ENGINE_UNREACHABLE when the time is over
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
    throw new EngineError('ENGINE_UNREACHABLE', `The engine did not respond within ${timeoutMilliseconds / 1000} s.`, {
      cause,
    })
  }
}
