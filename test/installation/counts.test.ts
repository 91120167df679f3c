// The gateway and the control plane are killed under load repeatedly. Usage counts every request that got a response, and at
// most the requests in progress at a kill in addition.
import { once } from 'node:events'
import { Agent, request as httpRequest, type IncomingMessage } from 'node:http'
import { setTimeout as wait } from 'node:timers/promises'
import t from 'tap'
import { chanceOf } from '#test/simulation/chance.ts'
import { effort, seed } from '#test/support/effort.ts'
import { startPlatform } from '#test/support/platform.ts'

const kills = effort({ small: 2, full: 100 })
const connections = 16
const bodyBytes = 3_000

/** Results of one kind of request. */
interface Tally {
  responses: number
  bytes: number
  /** Requests that were sent and got no complete response. */
  lost: number
}

t.test('Requests, bytes and files: responses ≤ counted ≤ responses + requests in progress at kills', async (t) => {
  t.comment(`seed ${seed}`)
  const random = chanceOf(seed).next
  const platform = await startPlatform({ logLevel: 'error' })
  t.teardown(() => platform.stop())
  let control = await platform.startControlPlane()
  const { status, body } = await platform.call(
    'POST',
    '/v1/tenants',
    { name: 'counted', plan: 'Enterprise', region: 'local', isolation: 'schema-per-tenant' },
    { prefer: 'wait=30' },
  )
  t.equal(status, 201)
  const id = String(body['tenant_id'])
  const key = (body['keys'] as { secret_key: string }).secret_key
  // Every request counts as usage, so all go through `send`.
  const uploads: Tally = { responses: 0, bytes: 0, lost: 0 }
  const downloads: Tally = { responses: 0, bytes: 0, lost: 0 }
  const agent = new Agent({ keepAlive: true, maxSockets: connections })
  t.teardown(() => agent.destroy())
  const { port } = new URL(platform.gatewayUrl)
  const send = async (
    tally: Tally,
    method: string,
    path: string,
    payload?: Buffer | string,
    type = 'application/octet-stream',
  ) => {
    const request = httpRequest({
      agent,
      host: '127.0.0.1',
      port,
      method,
      path: `/t/counted${path}`,
      headers: { authorization: `Bearer ${key}`, 'content-type': type, 'content-length': payload?.length ?? 0 },
    })
    try {
      request.end(payload)
      const [response] = (await once(request, 'response')) as [IncomingMessage]
      let bytes = 0
      for await (const chunk of response) bytes += (chunk as Buffer).length
      tally.responses++
      tally.bytes += bytes
      return response.statusCode
    } catch (cause) {
      const isRejected = cause instanceof Error && 'code' in cause && cause.code === 'ECONNREFUSED'
      if (!isRejected) tally.lost++
      return undefined
    }
  }
  const statuses = new Map<string, number>()
  const note = (what: string, status: number | undefined) =>
    statuses.set(`${what} ${status ?? 'lost'}`, (statuses.get(`${what} ${status ?? 'lost'}`) ?? 0) + 1)
  note(
    'bucket',
    await send(
      uploads,
      'POST',
      '/storage/v1/bucket',
      JSON.stringify({ name: 'files', policy: 'public' }),
      'application/json',
    ),
  )
  const content = Buffer.alloc(bodyBytes, 7)
  note('first', await send(uploads, 'POST', '/storage/v1/object/files/first', content))
  t.same(Object.fromEntries(statuses), { 'bucket 201': 1, 'first 200': 1 })
  let isOver = false
  let nth = 0
  const clients = Array.from({ length: connections }, async (_, number) => {
    while (!isOver) {
      const received =
        number % 4 === 0
          ? await send(uploads, 'POST', `/storage/v1/object/files/file-${nth++}`, content)
          : await send(downloads, 'GET', '/storage/v1/object/files/first')
      note(number % 4 === 0 ? 'upload' : 'download', received)
      if (received === undefined) await wait(20)
    }
  })
  for (let kill = 0; kill < kills; kill++) {
    await wait(100 + random() * 400)
    // Kills each service alone, or one while the other is down.
    const what = kill % 4
    if (what !== 0) control.process.kill('SIGKILL')
    if (what !== 0) await control.exited
    if (what === 2) await wait(random() * 200)
    if (what !== 1) await platform.killGateway()
    if (what === 3) await platform.startGateway()
    if (what === 3) await wait(100 + random() * 200)
    if (what === 3) await platform.killGateway()
    await Promise.all([
      what === 0 ? undefined : platform.startControlPlane().then((started) => (control = started)),
      what === 1 ? undefined : platform.startGateway(),
    ])
  }
  await wait(200)
  isOver = true
  await Promise.all(clients)

  const all: Tally = {
    responses: uploads.responses + downloads.responses,
    bytes: uploads.bytes + downloads.bytes,
    lost: uploads.lost + downloads.lost,
  }
  t.comment(
    `${kills} kills: ${all.responses} responses, ${all.lost} lost; ${JSON.stringify(Object.fromEntries(statuses))}`,
  )
  t.ok(all.lost > 0, 'requests were in progress at a kill')
  t.ok(all.lost <= kills * 2 * connections)
  const usage = await settled(
    async () => {
      const { body: month } = await platform.call('GET', `/v1/tenants/${id}/usage`)
      const {
        api_requests: requests,
        egress,
        storage,
      } = month['resources'] as {
        api_requests: { count: number }
        egress: { bytes: number }
        storage: { files_count: number }
      }
      return { requests: requests.count, bytes: egress.bytes, files: storage.files_count }
    },
    (now) => now.requests >= all.responses && now.bytes >= all.bytes,
  )
  const isBetween = (what: string, min: number, count: number, max: number) =>
    t.ok(min <= count && count <= max, `${what}: ${min} ≤ ${count} ≤ ${max}`)
  isBetween('requests', all.responses, usage.requests, all.responses + all.lost)
  isBetween('bytes', all.bytes, usage.bytes, all.bytes + all.lost * bodyBytes)
  const stored = 1 + (statuses.get('upload 200') ?? 0)
  isBetween('files', stored, usage.files, stored + uploads.lost)
})

/** Reads until a sufficient reading repeats, or for 15 seconds. @returns the last reading */
async function settled<T>(read: () => Promise<T>, isEnough: (reading: T) => boolean): Promise<T> {
  const deadline = Date.now() + 15_000
  let last = await read()
  for (;;) {
    // Counts are pushed each second.
    await wait(1_100)
    const next = await read()
    if ((isEnough(next) && JSON.stringify(next) === JSON.stringify(last)) || Date.now() > deadline) return next
    last = next
  }
}
