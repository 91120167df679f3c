// The probe's process: requests the neighbour's data and the control plane five times a second, each time on a new
// connection, and writes a line of JSON for each request. It reads `tenants on` and `tenants off` from standard input.
import { randomUUID } from 'node:crypto'
import { request, type IncomingMessage } from 'node:http'
import { createInterface } from 'node:readline'
import { memoryReader } from './memory.ts'
import type { ProbeTarget } from './probe.ts'
import type { Report, SampleKind } from './samples.ts'

const intervalMilliseconds = 200
/** A request that takes longer has failed. */
const timeoutMilliseconds = 10_000

const target = JSON.parse(process.argv[2] ?? '') as ProbeTarget
const report = (line: Report) => process.stdout.write(`${JSON.stringify(line)}\n`)
const memory = memoryReader(target.services)
const now = () => performance.timeOrigin + performance.now()

interface Call {
  method?: string
  headers?: Record<string, string>
  body?: string
}

interface Received {
  status: number
  body: Buffer
}

function send(url: string, { method = 'GET', headers = {}, body }: Call): Promise<Received> {
  const { promise, resolve, reject } = Promise.withResolvers<Received>()
  const call = request(url, { method, headers, agent: false, localAddress: target.address })
  const timer = setTimeout(() => call.destroy(new Error('timeout')), timeoutMilliseconds)
  call.on('error', reject).on('response', (response: IncomingMessage) => {
    const chunks: Buffer[] = []
    response
      .on('data', (chunk: Buffer) => chunks.push(chunk))
      .on('error', reject)
      .on('end', () => {
        clearTimeout(timer)
        resolve({ status: response.statusCode ?? 0, body: Buffer.concat(chunks) })
      })
  })
  call.on('close', () => clearTimeout(timer))
  call.end(body)
  return promise
}

const key = { authorization: `Bearer ${target.neighbour.secretKey}` }
const json = { 'content-type': 'application/json' }
const tenant = target.neighbour.url
const operator = { authorization: `Bearer ${target.platformKey}` }

/** Calls and reports. A response with another status, or that `check` rejects, is a failure. */
async function probe(kind: SampleKind, work: () => Promise<string | undefined>): Promise<void> {
  const at = now()
  const failure = await work().catch((error: unknown) =>
    error instanceof Error ? `${'code' in error ? String(error.code) : error.name}: ${error.message}` : String(error),
  )
  report({ kind, at, milliseconds: now() - at, ...(failure === undefined ? {} : { failure }) })
}

async function expect(url: string, call: Call, isRight: (received: Received) => boolean): Promise<string | undefined> {
  const received = await send(url, call)
  return isRight(received) ? undefined : `${received.status} ${received.body.toString('utf8', 0, 200)}`
}

/** Writes whose events have not arrived yet, by the texts that they wrote. */
const expected = new Map<string, () => void>()

async function write(): Promise<void> {
  const text = randomUUID()
  const arrival = new Promise<undefined>((resolve) => expected.set(text, () => resolve(undefined)))
  const { promise: tooLate, resolve } = Promise.withResolvers<string>()
  const timer = setTimeout(() => resolve('the event did not arrive'), timeoutMilliseconds)
  await Promise.all([
    probe('write', () =>
      expect(
        `${tenant}/rest/v1/notes`,
        { method: 'POST', headers: { ...key, ...json }, body: JSON.stringify({ text }) },
        ({ status }) => status === 201,
      ),
    ),
    probe('event', () => Promise.race([arrival, tooLate])),
  ])
  clearTimeout(timer)
  expected.delete(text)
}

/** Follows the neighbour's events for ever, and reports each end of the stream as a failure. */
function follow(lastId?: string): void {
  let id = lastId
  const call = request(`${tenant}/events/v1?collection=notes`, {
    headers: { ...key, ...(id === undefined ? {} : { 'last-event-id': id }) },
    agent: false,
    localAddress: target.address,
  })
  const again = (why: string) => {
    report({ kind: 'event', at: now(), milliseconds: 0, failure: `the stream ended: ${why}` })
    setTimeout(() => follow(id), intervalMilliseconds)
  }
  call
    .on('error', (error) => again(error.message))
    .on('response', (response: IncomingMessage) => {
      let rest = ''
      response
        .setEncoding('utf8')
        .on('error', () => undefined)
        .on('data', (text: string) => {
          const lines = (rest + text).split('\n')
          rest = lines.pop() ?? ''
          for (const line of lines) {
            if (line.startsWith('id: ')) id = line.slice(4)
            const written = /"text": ?"([^"]+)"/.exec(line)?.[1]
            if (written !== undefined) expected.get(written)?.()
          }
        })
        .on('close', () => again(`status ${response.statusCode ?? 0}`))
    })
  call.end()
}

let isCreating = false
let createdCount = 0

/** Creates a tenant and deletes it again, one at a time, as long as this is requested. */
async function createTenants(): Promise<void> {
  while (isCreating) {
    await probe('create', async () => {
      const created = await send(`${target.controlUrl}/v1/tenants`, {
        method: 'POST',
        headers: { ...operator, ...json, prefer: 'wait=10' },
        body: JSON.stringify({ name: `probe-${process.pid}-${++createdCount}`, plan: 'Free', region: 'local' }),
      })
      const text = created.body.toString('utf8', 0, 300)
      const id = /"tenant_id":"([^"]+)"/.exec(text)?.[1]
      if (id === undefined || !created.body.includes('"status":"ready"')) return `${created.status} ${text}`
      return expect(
        `${target.controlUrl}/v1/tenants/${id}?purge=true`,
        { method: 'DELETE', headers: { ...operator, prefer: 'wait=10' } },
        ({ status, body }) => status === 202 && body.includes('"state":"succeeded"'),
      )
    })
    await new Promise((resolve) => setTimeout(resolve, intervalMilliseconds))
  }
}

createInterface({ input: process.stdin })
  .on('line', (line) => {
    const wasCreating = isCreating
    isCreating = line === 'tenants on'
    if (isCreating && !wasCreating) void createTenants()
  })
  // The test has ended.
  .on('close', () => process.exit(0))

follow()
setInterval(() => {
  void probe('list', () => expect(`${tenant}/rest/v1/notes?limit=20`, { headers: key }, ({ status }) => status === 200))
  void probe('download', () =>
    expect(
      `${tenant}/storage/v1/object/papers/letter.bin`,
      { headers: key },
      ({ status, body }) => status === 200 && body.length === target.neighbour.fileBytes,
    ),
  )
  void write()
  void probe('function', () =>
    expect(
      `${tenant}/functions/v1/invoke/empty`,
      { method: 'POST', headers: key, body: '' },
      ({ status }) => status === 200,
    ),
  )
  void probe('control', () =>
    expect(
      `${target.controlUrl}/v1/tenants/${target.neighbour.id}`,
      { headers: operator },
      ({ status }) => status === 200,
    ),
  )
  void memory().then((memory) => report({ at: now(), memory }))
}, intervalMilliseconds)
