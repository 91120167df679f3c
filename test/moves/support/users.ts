// Users of a tenant whose home moves: they write until they are stopped, and note what was acknowledged.
import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import type { Test } from 'tap'
import { EventReader } from '#test/support/event-reader.ts'
import { query } from '#test/support/postgres.ts'
import { first, request, second, type Owner, type ServedPlatform } from './platform.ts'

export interface User<T> {
  /** Writes that were acknowledged so far. */
  acknowledged: readonly T[]
  /** Ends after the write in progress. */
  stop(): Promise<void>
}

/** Pause between two writes of a user, in milliseconds: together they write some 200 times a second. */
const pauseMilliseconds = 10

/** Repeats the work until it is stopped, or the test ends. Its result is what was acknowledged, undefined if nothing was. */
export function repeated<T>(t: Test, work: () => Promise<T | undefined>, pause = pauseMilliseconds): User<T> {
  const acknowledged: T[] = []
  let isStopped = false
  t.teardown(() => {
    isStopped = true
  })
  const run = async () => {
    while (!isStopped) {
      const done = await work().catch(() => undefined)
      if (done !== undefined) acknowledged.push(done)
      await sleep(pause)
    }
  }
  const ended = run()
  return {
    acknowledged,
    stop: () => {
      isStopped = true
      return ended
    },
  }
}

/** Creates records through the REST interface. */
export function restWriter(t: Test, platform: ServedPlatform, owner: Owner): User<string> {
  return repeated(t, async () => {
    const id = randomUUID()
    const { status } = await request(platform, owner, 'POST', '/rest/v1/notes', { id, text: `of ${id}` })
    return status === 201 ? id : undefined
  })
}

/** Changes a table without a key, and a row of another one, in sessions of `database_url`. */
export function sqlWriter(t: Test, owner: Owner): User<number> {
  let client: pg.Client | undefined
  let [number, database] = [0, first as string]
  return repeated(t, async () => {
    if (client === undefined) {
      const opened = new pg.Client({ connectionString: owner.url.replace(/tenantry_homes_\d+/, database) })
      opened.on('error', () => undefined)
      await opened.connect()
      client = opened
    }
    try {
      number++
      await client.query('begin')
      await client.query('insert into keyless (n, doc, padded) values ($1, $2, $3)', [1000 + number, { number }, 'a'])
      await client.query(`update keyless set amount = 1 where n = $1`, [1000 + number])
      await client.query('update large set id = id + 1')
      await client.query('update facts set double = $1 where id = 4', [number])
      await client.query(`delete from keyless where ctid = (select ctid from keyless where n < 10 order by n limit 1)`)
      await client.query('commit')
      return number
    } catch (error) {
      await client.end().catch(() => undefined)
      client = undefined
      database = database === first ? second : first
      throw error
    }
  })
}

/**
 * Follows the events of records from now on, and connects again whenever its stream ends. It stops with the test.
 */
export async function eventFollower(
  t: Test,
  platform: ServedPlatform,
  owner: Owner,
): Promise<{ ids: Set<string>; count: () => number; stop: () => void }> {
  const ids = new Set<string>()
  const stopping = new AbortController()
  const stopped = () => stopping.signal.aborted
  let [last, count]: [string | undefined, number] = [undefined, 0]
  let reader: EventReader | undefined
  const opened = Promise.withResolvers<undefined>()
  const follow = async () => {
    while (!stopped()) {
      try {
        const headers = {
          authorization: `Bearer ${owner.key}`,
          ...(last === undefined ? {} : { 'last-event-id': last }),
        }
        const port = Number(new URL(platform.gatewayUrl).port)
        reader = await EventReader.open(
          { port } as Parameters<typeof EventReader.open>[0],
          `/t/${owner.name}/events/v1?collection=notes`,
          headers,
        )
        opened.resolve(undefined)
        let seen = 0
        while (!reader.isOver && !stopped()) {
          for (const { event, data } of reader.events.slice(seen)) {
            // The last one may be the reason for the end of the stream.
            if (event === 'end') continue
            count++
            ids.add(String((data['record'] as Record<string, unknown>)['id']))
          }
          seen = reader.events.length
          last = reader.lastId === '' ? last : reader.lastId
          await sleep(20)
        }
      } catch {
        await sleep(100)
      }
    }
  }
  void follow()
  const stop = () => {
    stopping.abort()
    reader?.leave()
  }
  t.teardown(stop)
  await opened.promise
  return {
    ids,
    count: () => count,
    stop,
  }
}

/**
 * Asserts that each acknowledged record and transaction is stored once in a database.
 * @param home the superuser's URL of the database
 * @returns the IDs of the records, and the rows of the transactions
 */
export async function checkStoredOnce(
  t: Test,
  home: string,
  { id }: Owner,
  writers: readonly User<string>[],
  session: User<number>,
): Promise<{ written: string[]; rows: Record<string, unknown>[] }> {
  const notes = await query(home, `select id::text, count(*)::int as n from "${id}".notes group by 1`)
  const stored = new Map(notes.map((note) => [String(note['id']), note['n']]))
  const written = writers.flatMap(({ acknowledged }) => acknowledged)
  t.same(
    written.filter((one) => stored.get(one) !== 1),
    [],
    `each of ${written.length} records is stored once`,
  )
  const rows = await query(
    home,
    `select n, count(*)::int as times, min(amount) as amount from "${id}".keyless where n > 1000 group by 1`,
  )
  const times = new Map(rows.map(({ n, times }) => [Number(n), times]))
  t.same(
    session.acknowledged.filter((number) => times.get(1000 + number) !== 1),
    [],
    `each of ${session.acknowledged.length} transactions is stored once`,
  )
  t.same(
    rows.filter(({ times, amount }) => times !== 1 || amount !== 1),
    [],
  )
  return { written, rows }
}
