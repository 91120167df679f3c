// Requests that cost much to read or to plan.
import { createHmac, randomUUID } from 'node:crypto'
import { effort } from '#test/support/effort.ts'
import type { Attack } from '../attack.ts'
import { openRaw, repeat, send, watchConnections, withKey } from '../support/requests.ts'
import { addNotes, callTenant } from '../support/tenants.ts'
import { allTargets } from '../support/target.ts'

const json = { 'content-type': 'application/json' }

export const parsingAttacks: Attack[] = [
  {
    name: 'JSON bodies of 10 MB that consist of brackets',
    attacker: 'service key',
    bound: 'nesting of 64; bytes in flight',
    sees: /\b400 /,
    async run(scene) {
      await addNotes(scene.attacker)
      const body = '['.repeat(10_000_000)
      return repeat(scene, 4, () =>
        send(scene, `${scene.attacker.url}/rest/v1/notes`, {
          method: 'POST',
          headers: { ...withKey(scene.attacker), ...json },
          body,
        }),
      )
    },
  },
  {
    name: 'JSON bodies of 20 MB with five million empty objects',
    attacker: 'service key',
    bound: '10,000 records of an insert; bytes in flight',
    sees: /\b(400|413|429) /,
    async run(scene) {
      await addNotes(scene.attacker)
      const body = `[${'{},'.repeat(effort({ small: 1_000_000, full: 5_000_000 }))}{}]`
      return repeat(scene, 4, () =>
        send(scene, `${scene.attacker.url}/rest/v1/notes`, {
          method: 'POST',
          headers: { ...withKey(scene.attacker), ...json },
          body,
        }),
      )
    },
  },
  {
    name: 'filters with a tree of 4,000 conditions',
    attacker: 'anonymous',
    bound: 'length of the URL; rate of the tenant; time of a statement',
    sees: /\b(200|400|414|429) ?/,
    smallRuns: [],
    async run(scene) {
      await addNotes(scene.attacker)
      const tree = Array.from({ length: 4_000 }, (_, n) => `text.eq.a${n}`).join(',')
      return repeat(scene, 8, () => send(scene, `${scene.attacker.url}/rest/v1/notes?or=(${tree})`))
    },
  },
  {
    name: 'regular expressions and patterns that backtrack',
    attacker: 'anonymous',
    bound: 'time of a statement; connections and turns of a tenant',
    sees: /\b(200|400|429|503) ?/,
    targets: allTargets,
    async run(scene) {
      await addNotes(scene.attacker)
      await callTenant(
        scene.attacker,
        'POST',
        '/rest/v1/notes',
        JSON.stringify(Array.from({ length: 10 }, () => ({ text: 'ab'.repeat(20_000) }))),
      )
      const filters = [
        'text=match.' + encodeURIComponent('^(.*)(.*)(.*)\\1\\2\\3x$'),
        `text=like.${encodeURIComponent(`${'%a%b'.repeat(40)}x`)}`,
      ]
      return repeat(scene, 16, (n) => {
        const call = send(scene, `${scene.attacker.url}/rest/v1/notes?${filters[n % 2] ?? ''}`)
        const left = new Promise<string>((resolve) => setTimeout(() => resolve('200 (left)'), scene.milliseconds))
        return Promise.race([call, left])
      })
    },
  },
  {
    name: 'relations that embed each other 16 levels deep',
    attacker: 'anonymous',
    bound: 'a default limit for embedded lists; bytes of a response; time of a statement',
    sees: /\b(200|400|413|429|503) ?/,
    targets: allTargets,
    smallRuns: ['shared Postgres'],
    async run(scene) {
      const { attacker } = scene
      const fields = [
        { name: 'id', type: 'uuid', primary: true },
        { name: 'owner', type: 'string' },
        { name: 'parent', type: 'uuid', references: 'nodes' },
      ]
      const schema = { name: 'nodes', fields, rls_policy: { type: 'public_read', owner_field: 'owner' } }
      await callTenant(attacker, 'POST', '/rest/v1/schemas', JSON.stringify(schema))
      await callTenant(attacker, 'POST', '/admin/reload-schemas', '{}')
      const id = '11111111-1111-4111-8111-111111111111'
      const records = [{ id, parent: id }, ...Array.from({ length: 99 }, () => ({ id: randomUUID(), parent: id }))]
      await callTenant(attacker, 'POST', '/rest/v1/nodes', JSON.stringify(records))
      // Each level multiplies the rows: the children of the root, the root of each child, its children again.
      const depth = effort({ small: 6, full: 14 })
      const select = Array.from({ length: depth }).reduce<string>(
        (inner, _, n) => `id,${n % 2 === 0 ? 'nodes!parent' : 'parent'}(${inner})`,
        'id',
      )
      return repeat(scene, 4, () => send(scene, `${attacker.url}/rest/v1/nodes?select=${select}`))
    },
  },
  {
    name: 'signed tokens of 8 KB, each a different one',
    attacker: 'service key',
    bound: '10,000 verified tokens in the cache',
    sees: /\b(200|429) ?/,
    async run(scene) {
      const { attacker } = scene
      await addNotes(attacker)
      const secret = attacker.jwtSecret
      const encode = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')
      const exp = Math.floor(Date.now() / 1000) + 3600
      const tokenOf = (n: number) => {
        const signed = `${encode({ alg: 'HS256' })}.${encode({ sub: `user-${n}`, exp, role: 'authenticated', filler: 'x'.repeat(5_900) })}`
        return `${signed}.${createHmac('sha256', secret).update(signed).digest('base64url')}`
      }
      return repeat(scene, 8, (n) =>
        send(scene, `${attacker.url}/rest/v1/notes?limit=1`, { headers: { authorization: `Bearer ${tokenOf(n)}` } }),
      )
    },
  },
  {
    name: 'tokens with unknown key IDs and 8 KB of headers',
    attacker: 'anonymous',
    bound: 'size of a head; rejections of an address',
    sees: /\b(401|429) ?/,
    smallRuns: [],
    run: (scene) =>
      repeat(scene, 8, (n) => {
        const head = Buffer.from(JSON.stringify({ alg: 'HS256', kid: `${n}${'x'.repeat(5_000)}` })).toString(
          'base64url',
        )
        return send(scene, `${scene.attacker.url}/rest/v1/notes`, {
          headers: { authorization: `Bearer ${head}.e30.AAAA` },
        })
      }),
  },
  {
    name: 'preflight requests of any origin',
    attacker: 'anonymous',
    bound: "the tenant's rate",
    sees: /\b(204|429) ?/,
    smallRuns: [],
    run: (scene) =>
      repeat(scene, 16, (n) =>
        send(scene, `${scene.attacker.url}/rest/v1/notes`, {
          method: 'OPTIONS',
          headers: { origin: `https://${n}.example`, 'access-control-request-method': 'PATCH' },
        }),
      ),
  },
  {
    name: 'downloads with 1,000 ranges',
    attacker: 'service key',
    bound: 'size of a head; one range of a download',
    sees: /\b(200|206|416|431) ?/,
    smallRuns: [],
    async run(scene) {
      const { attacker } = scene
      await callTenant(attacker, 'POST', '/storage/v1/bucket', '{"name":"ranges"}')
      const file = new Uint8Array(1_000_000)
      await callTenant(attacker, 'POST', '/storage/v1/object/ranges/file.bin', file, 'application/octet-stream')
      const range = `bytes=${Array.from({ length: 1_000 }, (_, n) => `${n}-`).join(',')}`
      return repeat(scene, 8, () =>
        send(scene, `${attacker.url}/storage/v1/object/ranges/file.bin`, { headers: { ...withKey(attacker), range } }),
      )
    },
  },
  {
    name: '10,000 requests in a row on each connection, without reading',
    attacker: 'anonymous',
    bound: 'requests in progress on a connection',
    sees: /^closed/,
    targets: allTargets,
    smallRuns: ['shared Postgres', 'own Postgres'],
    async run(scene) {
      const { port, pathname, host } = new URL(scene.attacker.url)
      const text = `GET ${pathname}/health HTTP/1.1\r\nhost: ${host}\r\n\r\n`.repeat(10_000)
      const connections = Array.from({ length: effort({ small: 5, full: 20 }) }, () =>
        openRaw(scene, Number(port), text),
      )
      return watchConnections(scene, connections)
    },
  },
  {
    name: 'large bodies to the control plane without a key',
    attacker: 'anonymous',
    bound: 'the control plane checks the key before it reads the body',
    sees: /\b(401|413|429|EPIPE|ECONNRESET)/,
    createsTenants: true,
    async run(scene) {
      const body = Buffer.alloc(50_000_000, ' ')
      return repeat(scene, 8, () =>
        send(scene, `${scene.controlUrl}/v1/tenants`, { method: 'POST', headers: json, body }),
      )
    },
  },
  {
    name: 'wrong keys at the control plane',
    attacker: 'anonymous',
    bound: 'a key is looked up by its hash',
    sees: /\b(401|429) /,
    smallRuns: [],
    createsTenants: true,
    run: (scene) =>
      repeat(scene, 16, (n) =>
        send(scene, `${scene.controlUrl}/v1/tenants`, { headers: { authorization: `Bearer tnp_wrong${n}` } }),
      ),
  },
  {
    name: 'bodies in chunks of one byte with long extensions',
    attacker: 'anonymous',
    bound: 'rights are checked before the body; minimum rate of bodies',
    sees: /\b(400|401|403|404|413|429|closed)/,
    async run(scene) {
      const { port, pathname, host } = new URL(scene.attacker.url)
      const head =
        `POST ${pathname}/rest/v1/notes HTTP/1.1\r\nhost: ${host}\r\n` +
        `content-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n`
      const chunk = `1;${'x'.repeat(1_000)}\r\n \r\n`.repeat(1_000)
      const connections = Array.from({ length: effort({ small: 10, full: 50 }) }, () => {
        const connection = openRaw(scene, Number(port), head)
        const more = () => {
          while (connection.socket.writable && connection.socket.write(chunk));
        }
        connection.socket.on('connect', more).on('drain', more)
        return connection
      })
      return watchConnections(scene, connections)
    },
  },
]
