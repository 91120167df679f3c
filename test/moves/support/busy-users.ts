// The users of a tenant that uses everything. Each numbers what it does, does nothing twice, and notes what was acknowledged.
import { createHash, createHmac, randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import type { Test } from 'tap'
import { RawSocket } from '#test/realtime/support/raw-socket.ts'
import { randomContent, webhookSecret, type BusyTenant } from './busy-tenant.ts'
import { repeated, type User } from './users.ts'

/** Pause between two requests of a user: functions must be able to run as often as users write. */
const pauseMilliseconds = 60

export const sha256 = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex')

/** Creates notes. Each has the writer's name and its own number. */
export function noteWriter(t: Test, tenant: BusyTenant, writer: string): User<number> {
  let number = 0
  return repeated(
    t,
    async () => {
      const note = { number: ++number, text: writer }
      const { status } = await tenant.send('POST', '/rest/v1/notes', { body: note })
      return status === 201 ? note.number : undefined
    },
    pauseMilliseconds,
  )
}

/** Creates an order, and changes its number again and again. It reads each number that was acknowledged. */
export async function orderWriter(t: Test, tenant: BusyTenant): Promise<User<number> & { stale: string[] }> {
  const id = randomUUID()
  const stale: string[] = []
  const { status } = await tenant.send('POST', '/rest/v1/orders', { body: { id, number: 0 } })
  if (status !== 201) throw new Error(`The order was not created: ${status}`)
  let number = 0
  const user = repeated(
    t,
    async () => {
      const written = ++number
      const path = `/rest/v1/orders?id=eq.${id}`
      const { status } = await tenant.send('PATCH', path, { body: { number: written } })
      if (status >= 300) return undefined
      const read = await tenant.send('GET', path)
      if (read.status === 200 && !read.bytes.toString().includes(`"number":${written}`))
        stale.push(`${written}: ${read.bytes.toString()}`)
      return written
    },
    pauseMilliseconds,
  )
  return { ...user, stale }
}

/** The hashes that a file may have: that of the last acknowledged upload, or of a later one without a response. */
export type Files = Map<string, { acknowledged: string | undefined; uncertain: string[] }>

/** Uploads new files, and overwrites a few. */
export function uploader(t: Test, tenant: BusyTenant, writer: string): User<string> & { files: Files } {
  const files: Files = new Map()
  let count = 0
  const user = repeated(
    t,
    async () => {
      const at = count++
      const path = at % 2 === 0 ? `${writer}/new-${at}` : `${writer}/replaced-${at % 3}`
      const content = randomContent()
      const file = files.get(path) ?? { acknowledged: undefined, uncertain: [] }
      files.set(path, file)
      const hash = sha256(content)
      file.uncertain.push(hash)
      const { status } = await tenant.send('POST', `/storage/v1/object/files/${path}`, {
        body: content,
        headers: { 'x-upsert': 'true' },
      })
      if (status !== 200) return undefined
      Object.assign(file, { acknowledged: hash, uncertain: [] })
      return hash
    },
    pauseMilliseconds,
  )
  return { ...user, files }
}

/** Reads a file through a URL that was signed before. */
export async function signedReader(t: Test, tenant: BusyTenant): Promise<User<string> & { wrong: string[] }> {
  const content = randomContent()
  const stored = await tenant.send('POST', '/storage/v1/object/files/signed', { body: content })
  const { status, bytes } = await tenant.send('POST', '/storage/v1/object/sign/files/signed?expires_in=3600')
  if (stored.status !== 200 || status !== 200) throw new Error(`The URL was not signed: ${bytes.toString()}`)
  const { url } = JSON.parse(bytes.toString()) as { url: string }
  const path = url.slice(new URL(tenant.base).pathname.length)
  const wrong: string[] = []
  const user = repeated(
    t,
    async () => {
      const read = await tenant.send('GET', path, { isAnonymous: true })
      if (read.status >= 400 && read.status < 500) wrong.push(`${read.status} ${read.bytes.toString()}`)
      if (read.status !== 200) return undefined
      if (sha256(read.bytes) !== sha256(content)) wrong.push('other content')
      return url
    },
    pauseMilliseconds,
  )
  return { ...user, wrong }
}

/** Calls the function that records its calls. */
export function functionCaller(t: Test, tenant: BusyTenant): User<number> {
  let number = 0
  return repeated(
    t,
    async () => {
      const call = ++number
      const { status } = await tenant.send('POST', '/functions/v1/invoke/call', { body: { number: call } })
      return status === 200 ? call : undefined
    },
    pauseMilliseconds,
  )
}

/** Sends signed messages to the webhook function, each until it is accepted. */
export function webhookSender(t: Test, tenant: BusyTenant): User<string> {
  let number = 0
  let isAccepted = true
  return repeated(
    t,
    async () => {
      if (isAccepted) number++
      const [id, at] = [`message-${number}`, Math.floor(Date.now() / 1_000)]
      const body = { number }
      const signature = createHmac('sha256', webhookSecret)
        .update(`${id}.${at}.${JSON.stringify(body)}`)
        .digest('hex')
      isAccepted = false
      const { status } = await tenant.send('POST', '/functions/v1/webhook/hook', {
        body,
        headers: { 'tenantry-id': id, 'tenantry-timestamp': String(at), 'tenantry-signature': `v1=${signature}` },
        isAnonymous: true,
      })
      isAccepted = status === 200
      return isAccepted ? id : undefined
    },
    pauseMilliseconds,
  )
}

/** Transfers amounts in transactions, in sessions of the same `database_url` at the gateway, whichever database has the home. */
export function sqlSession(t: Test, tenant: BusyTenant): User<number> & { logins: () => number } {
  let client: pg.Client | undefined
  let [number, logins] = [0, 0]
  t.teardown(() => client?.end().catch(() => undefined))
  const user = repeated(
    t,
    async () => {
      if (client === undefined) {
        const opened = new pg.Client({ connectionString: tenant.url })
        opened.on('error', () => undefined)
        await opened.connect()
        logins++
        client = opened
      }
      try {
        const transfer = ++number
        await client.query('begin')
        await client.query('insert into transfers (number, amount) values ($1, 1)', [transfer])
        await client.query('update accounts set total = total + 1')
        await client.query('commit')
        return transfer
      } catch (error) {
        const ended = client
        client = undefined
        await ended.end().catch(() => undefined)
        throw error
      }
    },
    pauseMilliseconds,
  )
  return { ...user, logins: () => logins }
}

/** Follows the changes of notes on a channel, and joins it again whenever its connection ends. It stops with the test. */
export async function channelFollower(t: Test, tenant: BusyTenant) {
  const changes: string[] = []
  const stopping = new AbortController()
  const isStopped = () => stopping.signal.aborted
  let joins = 0
  let raw: RawSocket | undefined
  const joined = Promise.withResolvers<undefined>()
  const follow = async () => {
    while (!isStopped()) {
      try {
        const opened = await RawSocket.open({ url: tenant.base, publishableKey: tenant.key })
        raw = opened
        const wanted = { event: 'INSERT', schema: 'public', table: 'notes' }
        const { reply } = await opened.join('realtime:notes', { postgres_changes: [wanted] })
        if (reply.payload['status'] !== 'ok') throw new Error(JSON.stringify(reply.payload))
        joins++
        joined.resolve(undefined)
        let seen = 0
        while (opened.closed === undefined && opened.of('phx_error').length === 0 && !isStopped()) {
          const received = opened.of('postgres_changes')
          for (const { payload } of received.slice(seen)) {
            const { record } = (payload as { data: { record: { id: string } } }).data
            changes.push(record.id)
          }
          seen = received.length
          await sleep(20)
        }
      } catch {
        await sleep(100)
      } finally {
        raw?.leave()
      }
    }
  }
  const ended = follow()
  const stop = () => {
    stopping.abort()
    raw?.leave()
    return ended
  }
  t.teardown(stop)
  await joined.promise
  return { changes, joins: () => joins, stop }
}
