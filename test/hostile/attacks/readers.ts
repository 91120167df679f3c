// Clients that request much and read slowly, and connections that last.
import { effort } from '#test/support/effort.ts'
import type { Attack, Scene } from '../attack.ts'
import { openRaw, watchConnections, withKey } from '../support/requests.ts'
import { addNotes, callTenant, type Tenant } from '../support/tenants.ts'
import { allTargets } from '../support/target.ts'

/** Opens connections that send a request with the tenant's key and read no more than the first bytes of the response. */
async function readSlowly(
  scene: Scene,
  { url, secretKey }: Tenant,
  count: number,
  path: string,
  headers: Record<string, string> = {},
  body?: string,
): Promise<string> {
  const { port, pathname, host } = new URL(url)
  const length = body === undefined ? {} : { 'content-type': 'application/json', 'content-length': String(body.length) }
  const all = { host, authorization: `Bearer ${secretKey}`, ...headers, ...length }
  const method = body === undefined ? 'GET' : 'POST'
  const head = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`)
  const connections = Array.from({ length: count }, (_, n) => {
    const connection = openRaw(
      { ...scene, address: scene.addressOf(n) },
      Number(port),
      `${method} ${pathname}${path} HTTP/1.1\r\n${head.join('')}\r\n${body ?? ''}`,
    )
    connection.socket.once('data', () => connection.socket.pause())
    return connection
  })
  return watchConnections(scene, connections)
}

/** Uploads files with much metadata. */
async function uploadWithMetadata(tenant: Tenant, count: number): Promise<void> {
  const metadata = Buffer.from(JSON.stringify({ text: 'x'.repeat(8_000) })).toString('base64')
  await callTenant(tenant, 'POST', '/storage/v1/bucket', '{"name":"described"}')
  for (let n = 0; n < count; n++) {
    const response = await fetch(`${tenant.url}/storage/v1/object/described/${n}.txt`, {
      method: 'POST',
      headers: { ...withKey(tenant), 'content-type': 'text/plain', 'x-metadata': metadata },
      body: 'x',
    })
    if (!response.ok) throw new Error(`${response.status} ${await response.text()}`)
  }
}

export const readerAttacks: Attack[] = [
  {
    name: 'downloads of a file of 20 MB that nobody reads',
    attacker: 'service key',
    bound: 'bytes that the runtime reads ahead of a client',
    sees: /\b(200|429|503)/,
    targets: allTargets,
    async run(scene) {
      const { attacker } = scene
      const file = new Uint8Array(20_000_000)
      await callTenant(attacker, 'POST', '/storage/v1/bucket', '{"name":"large"}')
      await callTenant(attacker, 'POST', '/storage/v1/object/large/file.bin', file, 'application/octet-stream')
      return readSlowly(scene, attacker, effort({ small: 100, full: 1_000 }), '/storage/v1/object/large/file.bin')
    },
  },
  {
    name: 'lists of files with much metadata',
    attacker: 'service key',
    bound: 'lists do not read metadata; the rate of the tenant',
    sees: /\b(200|413|429|503)/,
    smallRuns: [],
    async run(scene) {
      await uploadWithMetadata(scene.attacker, effort({ small: 50, full: 500 }))
      return readSlowly(
        scene,
        scene.attacker,
        effort({ small: 100, full: 400 }),
        '/storage/v1/object/list/described',
        {},
        '{"prefix":"","limit":1000}',
      )
    },
  },
  {
    name: 'more event streams than the plan has connections',
    attacker: 'service key',
    bound: 'long-lived connections of the plan',
    sees: /429 QUOTA_CONNECTIONS/,
    targets: allTargets,
    run: (scene) =>
      readSlowly(scene, scene.attacker, effort({ small: 200, full: 1_000 }), '/events/v1', {
        accept: 'text/event-stream',
      }),
  },
  {
    name: 'requests to switch to WebSocket',
    attacker: 'service key',
    bound: "the tenant's rate, and its share of the runtime's sockets",
    sees: /\b(4\d\d|503)/,
    smallRuns: [],
    run: (scene) =>
      readSlowly(scene, scene.attacker, effort({ small: 400, full: 2_000 }), '/rest/v1/notes', {
        connection: 'Upgrade',
        upgrade: 'websocket',
        'sec-websocket-version': '13',
        'sec-websocket-key': 'dGhlIHNhbXBsZSBub25jZQ==',
      }),
  },
  {
    name: 'lists of 20 MB that nobody reads',
    attacker: 'service key',
    bound: "the tenant's share of the bytes of results",
    sees: /\b(200|413|429|503|open)/,
    targets: allTargets,
    smallRuns: ['shared Postgres'],
    async run(scene) {
      const { attacker } = scene
      await addNotes(attacker)
      for (let n = 0; n < 4; n++) {
        const records = Array.from({ length: 10 }, () => ({ text: 'x'.repeat(500_000) }))
        await callTenant(attacker, 'POST', '/rest/v1/notes', JSON.stringify(records))
      }
      return readSlowly(scene, attacker, effort({ small: 50, full: 400 }), '/rest/v1/notes')
    },
  },
  {
    name: 'results of 5 MB of four tenants, many at once, that nobody reads',
    attacker: 'service key',
    bound: 'bytes of results in flight; a share of them for each tenant, which leaves some for others',
    sees: /\b(200|429|503|open)/,
    smallRuns: ['shared Postgres'],
    async run(scene) {
      const others = await Promise.all(
        Array.from({ length: effort({ small: 1, full: 3 }) }, () => scene.anotherTenant()),
      )
      const tenants = [scene.attacker, ...others]
      for (const tenant of tenants) {
        await addNotes(tenant)
        const records = Array.from({ length: 5 }, () => ({ text: 'x'.repeat(1_000_000) }))
        await callTenant(tenant, 'POST', '/rest/v1/notes', JSON.stringify(records))
      }
      const unread = await Promise.all(
        tenants.map((tenant) => readSlowly(scene, tenant, effort({ small: 40, full: 300 }), '/rest/v1/notes')),
      )
      return unread.join(', ')
    },
  },
]
