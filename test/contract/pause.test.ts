// The wait in the loops of all parts.
import { getEventListeners } from 'node:events'
import t from 'tap'
import { pause } from '#contract/pause.ts'

t.test('A pause ends after its time, and leaves no listener at its signal', async (t) => {
  const { signal } = new AbortController()
  await pause(1, signal)
  await pause(1)
  t.equal(getEventListeners(signal, 'abort').length, 0)
})

t.test('An aborted pause ends at once, without an error', async () => {
  const stopping = new AbortController()
  const waiting = pause(600_000, stopping.signal)
  stopping.abort(new Error('stopped'))
  await waiting
  await pause(600_000, stopping.signal)
})
