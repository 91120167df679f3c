// All users of a tenant that uses everything at once, and the checks of what they have left.
import type { Test } from 'tap'
import type { Platform } from '#test/support/platform.ts'
import { query } from '#test/support/postgres.ts'
import { until } from '#test/support/until.ts'
import type { BusyTenant } from './busy-tenant.ts'
import {
  channelFollower,
  functionCaller,
  noteWriter,
  orderWriter,
  sha256,
  signedReader,
  sqlSession,
  uploader,
  webhookSender,
} from './busy-users.ts'
import { eventFollower, type User } from './users.ts'

/** Acknowledgements of each user before work counts as continued. */
const minProgress = 8

/** Reads from the tenant's home, whose schema is `{home}` in the text. */
export type ReadHome = (text: string) => Promise<Record<string, unknown>[]>

export function homeReader(platform: Platform, { id }: BusyTenant, database: string): ReadHome {
  return (text) => query(platform.postgres.url(database), text.replaceAll('{home}', `"${id}"`))
}

/** Starts the users that continue at once after a kill of any service: writers of rows and files, and a follower. */
export async function startWriters(t: Test, tenant: BusyTenant) {
  const follower = await eventFollower(t, tenant.platform, tenant)
  const notes = [noteWriter(t, tenant, 'ada'), noteWriter(t, tenant, 'ben')] as const
  const orders = await orderWriter(t, tenant)
  const uploads = [uploader(t, tenant, 'ada'), uploader(t, tenant, 'ben')] as const
  const transfers = sqlSession(t, tenant)
  return { follower, notes, orders, uploads, transfers, ...groupOf([...notes, orders, ...uploads, transfers]) }
}
export type Writers = Awaited<ReturnType<typeof startWriters>>

/** Starts all users. */
export async function startUsers(t: Test, tenant: BusyTenant) {
  const channel = await channelFollower(t, tenant)
  return { channel, ...(await startRequests(t, tenant)) }
}

/** Starts all users except the one of channels. */
export async function startRequests(t: Test, tenant: BusyTenant) {
  const writers = await startWriters(t, tenant)
  const reader = await signedReader(t, tenant)
  const calls = functionCaller(t, tenant)
  const messages = webhookSender(t, tenant)
  return { ...writers, reader, calls, messages, ...groupOf([...writers.all, reader, calls, messages]) }
}

function groupOf(all: readonly User<unknown>[]) {
  return {
    all,
    /** Waits until each user has received more acknowledgements. */
    async untilAllContinue(): Promise<void> {
      const before = all.map(({ acknowledged }) => acknowledged.length)
      const slow = () => all.filter(({ acknowledged }, at) => acknowledged.length < (before[at] ?? 0) + minProgress)
      await until(() => slow().length === 0, 'the work of all users')
    },
    async stop(): Promise<void> {
      await Promise.all(all.map((user) => user.stop()))
    },
  }
}

/** Checks that each acknowledged write is stored once, and each event was received once. @returns the IDs of all notes */
export async function checkWrites(t: Test, home: ReadHome, users: Writers): Promise<string[]> {
  const { notes, orders, transfers, follower } = users
  const stored = await home('select id::text, number, text from {home}.notes')
  for (const [at, writer] of ['ada', 'ben'].entries()) {
    const numbers = stored.filter(({ text }) => text === writer).map(({ number }) => Number(number))
    t.equal(numbers.length, new Set(numbers).size, 'no note is stored twice')
    const missing = notes[at]?.acknowledged.filter((number) => !numbers.includes(number))
    t.same(missing, [], `all ${notes[at]?.acknowledged.length} notes of ${writer} are stored`)
  }
  t.same(orders.stale, [], 'each change of the order was read')
  const numbers = (await home('select number from {home}.transfers')).map(({ number }) => Number(number))
  t.equal(numbers.length, new Set(numbers).size, 'no transfer is stored twice')
  const missing = transfers.acknowledged.filter((number) => !numbers.includes(number))
  t.same(missing, [], `all ${transfers.acknowledged.length} transfers are stored`)
  t.same(await home('select total from {home}.accounts'), [{ total: numbers.length }], 'in whole transactions')
  const ids = stored.map(({ id }) => String(id))
  await until(() => ids.every((id) => follower.ids.has(id)), 'the events of all notes')
  t.equal(follower.count(), ids.length, 'each event once')
  return ids
}

/** Checks that each file has the content that was acknowledged last. */
export async function checkFiles(t: Test, tenant: BusyTenant, { uploads }: Pick<Writers, 'uploads'>): Promise<void> {
  const wrong: string[] = []
  for (const { files } of uploads)
    for (const [path, { acknowledged, uncertain }] of files) {
      const { status, bytes } = await tenant.send('GET', `/storage/v1/object/files/${path}`)
      const hash = status === 200 ? sha256(bytes) : undefined
      if (hash !== acknowledged && !uncertain.includes(String(hash))) wrong.push(`${path}: ${status}`)
    }
  t.same(wrong, [], 'all files have the content that was acknowledged last')
}

/** Waits until no delivery waits, and returns what the functions have recorded. */
export async function runsOf(t: Test, home: ReadHome) {
  const undelivered = () => home('select seq, state, attempts, last_error, payload from {home}.function_deliveries')
  await until(async () => (await undelivered()).every(({ state }) => state === 'dead'), 'the deliveries')
  t.same(await undelivered(), [], 'no delivery has failed')
  const rows = await home('select trigger, subject, input from {home}.runs order by id')
  const of = (trigger: string) => rows.filter((run) => run['trigger'] === trigger)
  const changes = of('database').map(({ input }) => input as { table: string; record: { id: string; number: number } })
  return {
    of,
    subjects: (trigger: string) => of(trigger).map(({ subject }) => String(subject)),
    /** The IDs of the notes, in the order of the runs. */
    notes: changes.flatMap(({ table, record }) => (table === 'notes' ? [record.id] : [])),
    /** The numbers of the order, in the order of the runs. */
    orders: changes.flatMap(({ table, record }) => (table === 'orders' ? [record.number] : [])),
  }
}
