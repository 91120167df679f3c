// The wait of the parts' loops.
import { getEventListeners } from 'node:events'
import t from 'tap'
import { pause } from '#contract/pause.ts'

t.test('a pause ends when its time is over, and leaves nothing at its signal', async (t) => {
  const { signal } = new AbortController()
  await pause(1, signal)
  await pause(1)
  t.equal(getEventListeners(signal, 'abort').length, 0)
})

t.test('a pause that is aborted ends at once, without an error', async () => {
  const stopping = new AbortController()
  const waiting = pause(600_000, stopping.signal)
  stopping.abort(new Error('stopped'))
  await waiting
  await pause(600_000, stopping.signal)
})
