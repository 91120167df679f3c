// SQL clients of a cluster: one that writes consecutive numbers through every failover, and one whose session is observed.
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import type { Test } from 'tap'
import { until } from '#test/support/until.ts'

/** Opens a session that sends nothing, and returns how to wait for its end. */
export async function idleSession(url: string) {
  const client = new pg.Client({ connectionString: url })
  client.on('error', () => undefined)
  let hasEnded = false
  client.on('end', () => (hasEnded = true))
  await client.connect()
  return { ended: (what: string) => until(() => hasEnded, what, 30_000) }
}

/** A row that was sent; times in milliseconds of this machine's clock. */
export interface SentRow {
  number: number
  sentAt: number
  /** Undefined if the client got an error, and does not know whether the row was stored. */
  acknowledgedAt: number | undefined
}

/** Inserts consecutive numbers, each once, through the tenant's URL, and connects again after each error. @param waitMs after each row */
export function startWriter(url: string, waitMs = 20) {
  const acknowledged: number[] = []
  const sent: SentRow[] = []
  let isStopped = false
  let maxPause = 0
  let lastError: unknown
  const connect = async () => {
    const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 5_000, query_timeout: 10_000 })
    client.on('error', () => undefined)
    await client.connect()
    return client
  }
  // The end of a connection to a host that is gone is never confirmed.
  const end = (client: pg.Client | undefined) => Promise.race([client?.end().catch(() => undefined), sleep(1_000)])
  const run = async () => {
    let number = 0
    let last = performance.now()
    let client: pg.Client | undefined
    while (!isStopped) {
      number++
      try {
        client ??= await connect()
        if (number === 1) await client.query('create table if not exists numbers (number int)')
        const row: SentRow = { number, sentAt: Date.now(), acknowledgedAt: undefined }
        sent.push(row)
        await client.query('insert into numbers values ($1)', [number])
        row.acknowledgedAt = Date.now()
        acknowledged.push(number)
        maxPause = Math.max(maxPause, performance.now() - last)
        last = performance.now()
      } catch (error) {
        lastError = error
        // Whether the row was stored is unknown. The next number is another row.
        if (acknowledged.length === 0) number = 0
        await end(client)
        client = undefined
        await sleep(50)
      }
      await sleep(waitMs)
    }
    await end(client)
  }
  const ended = run()
  let result: Promise<{ acknowledged: number[]; stored: number[] }> | undefined
  const finish = async () => {
    isStopped = true
    await ended
    const client = await connect()
    try {
      const { rows } = await client.query<{ number: number }>('select number from numbers order by number')
      return { acknowledged, stored: rows.map(({ number }) => number) }
    } finally {
      await end(client)
    }
  }
  return {
    count: () => acknowledged.length,
    /** All rows that were sent until now. */
    sent: (): readonly SentRow[] => sent,
    /** Returns the longest time without an acknowledged write since the last call, in milliseconds. */
    takeMaxPause(): number {
      const pause = Math.round(maxPause)
      maxPause = 0
      return pause
    },
    async acknowledged(total: number, seconds = 90): Promise<void> {
      const deadline = performance.now() + seconds * 1000
      while (acknowledged.length < total) {
        if (performance.now() > deadline)
          throw new Error(
            `${new URL(url).username}: ${acknowledged.length} of ${total} writes in ${seconds} s. Its last error: ${String(lastError)}`,
          )
        await sleep(20)
      }
    },
    stop: () => (result ??= finish()),
  }
}

/** Checks that every acknowledged number is stored, and none twice. */
export function lostNothing(
  t: Test,
  { acknowledged, stored }: { acknowledged: readonly number[]; stored: readonly number[] },
): void {
  const counts = new Map<number, number>()
  for (const number of stored) counts.set(number, (counts.get(number) ?? 0) + 1)
  t.same(
    acknowledged.filter((number) => !counts.has(number)),
    [],
    `none of ${acknowledged.length} acknowledged rows is lost`,
  )
  t.same(
    [...counts].filter(([, count]) => count > 1),
    [],
    'no row occurs twice',
  )
}
