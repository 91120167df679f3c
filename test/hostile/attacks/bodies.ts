// Request bodies that are large, slow or many.
import { effort } from '#test/support/effort.ts'
import type { Attack, Scene } from '../attack.ts'
import { describeRaw, openRaw, summary, watchConnections, withKey, type RawConnection } from '../support/requests.ts'
import { addNotes, type Tenant } from '../support/tenants.ts'

interface Upload {
  path: string
  headers?: Record<string, string>
  length: number
  /** Number of bytes of the body that are sent at once. The rest never arrives, except for a byte every half second. */
  sent: number
}

const megabyte = 1_000_000

/** The bytes that all bodies begin with. Hundreds of copies would take the machine's memory from the platform. */
const filler = Buffer.alloc(20 * megabyte, ' ')

/** Opens a POST with a body that never ends. */
function openPost(scene: Scene, { url }: Tenant, n: number, upload: Upload): RawConnection {
  const { port, pathname, host } = new URL(url)
  const headers = {
    host,
    'content-type': 'application/json',
    'content-length': String(upload.length),
    ...upload.headers,
  }
  const head = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
  const connection = openRaw(
    { ...scene, address: scene.addressOf(n) },
    Number(port),
    `POST ${pathname}${upload.path} HTTP/1.1\r\n${head.join('')}\r\n`,
  )
  if (upload.sent > 0) connection.socket.write(filler.subarray(0, upload.sent))
  const drip = setInterval(() => {
    if (connection.socket.writable && !connection.socket.writableNeedDrain) connection.socket.write(' ')
  }, 500)
  connection.socket.once('close', () => clearInterval(drip))
  return connection
}

async function holdPosts(scene: Scene, count: number, upload: Upload, addresses = 250): Promise<string> {
  await addNotes(scene.attacker)
  const connections = Array.from({ length: count }, (_, n) => openPost(scene, scene.attacker, n % addresses, upload))
  return watchConnections(scene, connections)
}

/** Lengths of bodies whose memory together is almost the share of a tenant: twice 20 MB, and ever smaller ones. */
const fillingLengths = [
  ...Array.from({ length: 2 }, () => 20 * megabyte),
  ...Array.from({ length: 4 }, () => megabyte),
  ...Array.from({ length: 10 }, () => 100_000),
  ...Array.from({ length: 10 }, () => 10_000),
  ...Array.from({ length: 20 }, () => 1_000),
  ...Array.from({ length: 20 }, () => 100),
]

export const bodyAttacks: Attack[] = [
  {
    name: '4,100 slow POSTs to one tenant',
    attacker: 'anonymous',
    bound: "connections of an address; the tenant's share of the runtime's sockets; minimum rate of bodies",
    sees: /\b(401|408|413|429|503|closed|open)/,
    targets: ['npm start'],
    run: (scene) =>
      holdPosts(scene, effort({ small: 1_000, full: 4_100 }), { path: '/rest/v1/notes', length: 1_000, sent: 10 }),
  },
  {
    name: 'slow uploads of files with a secret key',
    attacker: 'service key',
    bound: "the tenant's share of the runtime's sockets; minimum rate of bodies",
    sees: /\b(400|404|408|413|429|503|closed)/,
    smallRuns: [],
    run: (scene) =>
      holdPosts(scene, effort({ small: 500, full: 2_000 }), {
        path: '/storage/v1/object/system/slow.bin',
        headers: { ...withKey(scene.attacker), 'content-type': 'application/octet-stream' },
        length: 90 * megabyte,
        sent: 1_000,
      }),
  },
  {
    name: 'slow JSON bodies of 20 MB without credentials',
    attacker: 'anonymous',
    bound: 'bodies of anonymous callers: 1 MB; rights are checked before the body',
    sees: /\b(401|403|413|429|503|closed)/,
    run: (scene) =>
      holdPosts(scene, effort({ small: 40, full: 380 }), {
        path: '/rest/v1/notes',
        length: 20 * megabyte,
        sent: 19 * megabyte,
      }),
  },
  {
    name: 'slow JSON bodies of six tenants that use up the memory for bodies',
    attacker: 'service key',
    bound: 'a tenant uses no more bytes in flight than remain, and always has 256 KiB',
    sees: /\b(408|429|503|open|closed)/,
    smallRuns: ['shared Postgres'],
    async run(scene) {
      const others = await Promise.all(Array.from({ length: 5 }, () => scene.anotherTenant()))
      const tenants = [scene.attacker, ...others]
      await Promise.all(tenants.map(addNotes))
      const connections = tenants.flatMap((tenant, at) =>
        fillingLengths.map((length, n) =>
          openPost(scene, tenant, at * fillingLengths.length + n, {
            path: '/rest/v1/notes',
            headers: withKey(tenant),
            length,
            sent: 50,
          }),
        ),
      )
      await new Promise((resolve) => setTimeout(resolve, 3 * scene.milliseconds))
      return summary(connections.map(describeRaw))
    },
  },
  {
    name: 'slow JSON bodies of 20 MB with a secret key',
    attacker: 'service key',
    bound: "the tenant's share of the bytes in flight",
    sees: /\b(408|413|429|503|closed)/,
    smallRuns: ['shared Postgres'],
    run: (scene) =>
      holdPosts(scene, effort({ small: 40, full: 380 }), {
        path: '/rest/v1/notes',
        headers: withKey(scene.attacker),
        length: 20 * megabyte,
        sent: 19 * megabyte,
      }),
  },
]
