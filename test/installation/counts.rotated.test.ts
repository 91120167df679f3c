// The gateway and the control plane are killed under load repeatedly. Usage counts every request that got a response, and at
// most the requests in progress at a kill in addition.
import { setTimeout as wait } from 'node:timers/promises'
import t from 'tap'
import { chanceOf } from '#test/simulation/chance.ts'
import { effort, seed } from '#test/support/effort.ts'
import { startPlatform } from '#test/support/platform.ts'
import { MeteredRequests, emptyTally, isBetween, settled } from './support/metered-requests.ts'

const kills = effort({ small: 2, full: 100 })
const connections = 16
const bodyBytes = 3_000

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
  const [uploads, downloads] = [emptyTally(), emptyTally()]
  const requests = new MeteredRequests(
    { gatewayUrl: platform.gatewayUrl, name: 'counted', key },
    { connections, keepAlive: true },
  )
  t.teardown(() => requests.end())
  const statuses = new Map<string, number>()
  const note = (what: string, status: number | undefined) =>
    statuses.set(`${what} ${status ?? 'lost'}`, (statuses.get(`${what} ${status ?? 'lost'}`) ?? 0) + 1)
  note(
    'bucket',
    await requests.send(uploads, 'POST', '/storage/v1/bucket', {
      body: JSON.stringify({ name: 'files', policy: 'public' }),
      type: 'application/json',
    }),
  )
  const content = { body: Buffer.alloc(bodyBytes, 7) }
  note('first', await requests.send(uploads, 'POST', '/storage/v1/object/files/first', content))
  t.same(Object.fromEntries(statuses), { 'bucket 201': 1, 'first 200': 1 })
  let nth = 0
  requests.start(async (client) => {
    const isUpload = client % 4 === 0
    const received = isUpload
      ? await requests.send(uploads, 'POST', `/storage/v1/object/files/file-${nth++}`, content)
      : await requests.send(downloads, 'GET', '/storage/v1/object/files/first')
    note(isUpload ? 'upload' : 'download', received)
    return received
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
  await requests.end()

  const sum = (key: 'responses' | 'lost' | 'bytes') => uploads[key] + downloads[key]
  const [responses, lost, bytes] = [sum('responses'), sum('lost'), sum('bytes')]
  t.comment(`${kills} kills: ${responses} responses, ${lost} lost; ${JSON.stringify(Object.fromEntries(statuses))}`)
  t.ok(lost > 0, 'requests were in progress at a kill')
  t.ok(lost <= kills * 2 * connections)
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
    (now) => now.requests >= responses && now.bytes >= bytes,
  )
  isBetween(t, 'requests', [responses, usage.requests, responses + lost])
  isBetween(t, 'bytes', [bytes, usage.bytes, bytes + lost * bodyBytes])
  const stored = 1 + (statuses.get('upload 200') ?? 0)
  isBetween(t, 'files', [stored, usage.files, stored + uploads.lost])
})
