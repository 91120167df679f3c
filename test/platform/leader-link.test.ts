// The lead on links that break without a sign, as when a host loses its power: another control plane leads, and none waits for ever.
import pg from 'pg'
import t, { type Test } from 'tap'
import { openDatabase } from '#control-plane/platform/database.ts'
import { lead } from '#control-plane/platform/leader.ts'
import { startPostgres } from '#test/support/postgres.ts'
import { openTcpLink } from '#test/support/tcp-link.ts'
import { until } from '#test/support/until.ts'

const postgres = await startPostgres()
const times = { beat: 100, session: 600, poll: 50, response: 300 }

/** Starts a control plane's part in the election, by way of a link of its own. */
async function startCandidate(t: Test) {
  const link = await openTcpLink(postgres.port)
  const url = Object.assign(new URL(postgres.url('control')), { port: String(link.port) }).href
  const stopping = new AbortController()
  const seen = { epochs: [] as bigint[], leads: false }
  const ended = lead(
    { url, onError: () => undefined, times },
    async ({ epoch, lost }) => {
      seen.epochs.push(epoch)
      seen.leads = true
      await new Promise((resolve) => lost.addEventListener('abort', resolve))
      seen.leads = false
    },
    stopping.signal,
  )
  const stop = async () => {
    stopping.abort()
    link.cut()
    await ended
    await link.stop()
  }
  t.teardown(stop)
  return { link, seen }
}

t.teardown(() => postgres.stop())

t.test('The leader shows signs of life, so that its session stays', async (t) => {
  const { seen } = await startCandidate(t)
  await until(() => seen.leads, 'the first leads')
  await new Promise((resolve) => setTimeout(resolve, 3 * times.session))
  t.equal(seen.leads, true)
  t.equal(seen.epochs.length, 1)
})

t.test('A leader whose link is silent stops, and another one leads', async (t) => {
  const one = await startCandidate(t)
  await until(() => one.seen.leads, 'the first leads')
  const other = await startCandidate(t)
  one.link.silence()
  await until(() => other.seen.leads, 'the other leads', 20_000)
  await until(() => !one.seen.leads, 'the first stops', 20_000)
  t.ok((other.seen.epochs.at(-1) ?? 0n) > (one.seen.epochs.at(-1) ?? 0n))
  one.link.restore()
  other.link.silence()
  await until(() => one.seen.leads, 'the first leads again', 20_000)
  t.ok((one.seen.epochs.at(-1) ?? 0n) > (other.seen.epochs.at(-1) ?? 0n))
})

t.test('A write that the former leader has left open delays the next one until Postgres ends it', async (t) => {
  const database = openDatabase(postgres.url('control'))
  t.teardown(() => database.$disconnect())
  const [row] = await database.$queryRaw<{ limit: string }[]>`
    select current_setting('idle_in_transaction_session_timeout') as limit`
  t.equal(row?.limit, '30s', 'each session of a control plane has the limit')

  const one = await startCandidate(t)
  await until(() => one.seen.leads, 'the first leads')
  const other = await startCandidate(t)
  const writer = new pg.Client({
    connectionString: postgres.url('control'),
    idle_in_transaction_session_timeout: 2_000,
  })
  writer.on('error', () => undefined)
  await writer.connect()
  await writer.query('begin; select from installation for share')
  one.link.silence()
  await until(() => other.seen.leads, 'the other leads', 20_000)
  t.equal(other.seen.epochs.length, 1)
})

t.test('A control plane that waits notices that its link is silent', async (t) => {
  const one = await startCandidate(t)
  await until(() => one.seen.leads, 'the first leads')
  const other = await startCandidate(t)
  await new Promise((resolve) => setTimeout(resolve, 4 * times.poll))
  other.link.silence()
  await new Promise((resolve) => setTimeout(resolve, 2 * times.response))
  other.link.restore()
  one.link.silence()
  await until(() => other.seen.leads, 'the other leads', 20_000)
  t.equal(other.seen.epochs.length, 1)
})
