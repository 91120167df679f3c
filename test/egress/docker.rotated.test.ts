// The way out of a region on a Docker Engine: functions and the storage reach a server on another network through the gateway's
// egress proxy, and a tenant's container reaches nothing else.
import { execFile } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { connect, createServer as createSocketServer, type Server } from 'node:net'
import { once } from 'node:events'
import { networkInterfaces, tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import t, { type Test } from 'tap'
import { compileSource } from '#examples/functions/compile.ts'
import { parseRange, regionAddress } from '#control-plane/stacks/subnets.ts'
import { readAll } from '#test/functions/support/assemblyscript.ts'
import { startDockerPlatform, testEngine } from '#test/support/docker-platform.ts'
import { startS3Server } from '#test/support/s3-server.ts'

const run = promisify(execFile)
const range = '10.198.0.0/20'

/** An address of this machine that is on none of the engine's networks. */
function outerAddress(): string {
  const [found] = Object.entries(networkInterfaces()).flatMap(([name, addresses = []]) =>
    /^(?:docker|br-|veth)/.test(name) ? [] : addresses.filter(({ family, internal }) => family === 'IPv4' && !internal),
  )
  if (found === undefined) throw new Error('This machine has no address on a network.')
  return found.address
}

async function listenAt(t: Test, host: string, server: Server): Promise<number> {
  server.listen(0, host)
  await once(server, 'listening')
  t.teardown(() => server.close())
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('no port was given')
  return address.port
}

/** Runs in a tenant's runtime container: sends CONNECT requests with the tenant's own token, and connects directly. */
const attack = `
const { connect } = require('node:net')
const token = require('node:fs').readFileSync('/run/secrets/internal-token', 'utf8').trim()
const [targets, flood] = JSON.parse(process.argv[1])
const send = (target, authorization) => new Promise((resolve) => {
  const socket = connect({ host: 'gateway', port: 4404 })
  const end = (status) => resolve({ status, socket })
  socket.on('error', () => end(0)).on('close', () => end(0))
  socket.once('data', (data) => end(Number(String(data).slice(9, 12))))
  socket.write('CONNECT ' + target + ' HTTP/1.1\\r\\nHost: x\\r\\nProxy-Authorization: Bearer ' + authorization + '\\r\\n\\r\\n')
})
const direct = (host, port) => new Promise((resolve) => {
  const socket = connect({ host, port, timeout: 2000 })
  socket.on('connect', () => resolve('connected')).on('error', (error) => resolve(error.code)).on('timeout', () => resolve('silent'))
})
const main = async () => {
  const statuses = {}
  for (const target of targets) statuses[target] = (await send(target, token)).status
  const other = 't_' + '0'.repeat(20)
  const forged = (await send(flood, token.replace(/^t_[0-9a-f]{20}/, other))).status
  const [host, port] = flood.split(':')
  const open = (await Promise.all(Array.from({ length: 40 }, () => send(flood, token)))).filter(({ status }) => status === 200)
  console.log(JSON.stringify({ statuses, forged, direct: await direct(host, Number(port)), open: open.length }))
  process.exit(0)
}
void main()
`

t.test('Functions and the storage of a Docker region reach another network', { timeout: 240_000 }, async (t) => {
  const outside = outerAddress()
  const received = { bytes: 0 }
  const port = await listenAt(
    t,
    outside,
    createServer((request, response) =>
      request.resume().once('end', () => {
        received.bytes += request.socket.bytesRead
        response.end(`hello ${request.url}`)
      }),
    ),
  )
  const s3 = await startS3Server()
  t.teardown(() => s3.stop())
  const forwarded = Number(new URL(s3.settings.endpoint ?? '').port)
  const s3Port = await listenAt(
    t,
    outside,
    createSocketServer((client) => {
      const server = connect({ host: '127.0.0.1', port: forwarded })
      client.on('error', () => server.destroy()).pipe(server)
      server.on('error', () => client.destroy()).pipe(client)
    }),
  )
  const directory = await mkdtemp(join(tmpdir(), 'tenantry-egress-'))
  t.teardown(() => rm(directory, { recursive: true }))
  const secretFile = join(directory, 's3')
  await writeFile(secretFile, s3.settings.secretAccessKey)

  const platform = await startDockerPlatform({
    docker: {
      network_range: range,
      egress: { may_reach: [outside, '10.0.0.0/8', '127.0.0.0/8', '169.254.0.0/16'] },
      storage: {
        backend: 's3',
        s3: {
          endpoint: `http://${outside}:${s3Port}`,
          bucket: s3.settings.bucket,
          prefix: s3.settings.prefix,
          access_key_id: s3.settings.accessKeyId,
          secret_access_key_file: secretFile,
        },
      },
    },
  })
  t.teardown(() => platform.stop())
  const wasm = await compileSource(`${readAll}
import { tryFetch } from './tenantry.as'
process.stdout.write(tryFetch('{"url":"' + readAll() + '"}', new ArrayBuffer(0)).text)
`)
  const create = async (name: string, plan: string) => {
    const { status, body } = await platform.call(
      'POST',
      '/v1/tenants',
      { name, plan, region: 'local' },
      { prefer: 'wait=60' },
    )
    t.same([status, body['status']], [201, 'ready'], `${name}: ${String(body['reason'])}`)
    return { id: String(body['tenant_id']), name, key: (body['keys'] as { secret_key: string }).secret_key }
  }
  const [shared, own] = await Promise.all([create('shared', 'Free'), create('own', 'Pro')])

  for (const { name, key } of [shared, own]) {
    const form = new FormData()
    form.set('name', 'get')
    form.set('trigger', '"Http"')
    form.set('config', JSON.stringify({ http_hosts: [`${outside}:${port}`, '169.254.169.254', '10.198.0.1:4400'] }))
    form.set('wasm', new Blob([wasm]), 'get.wasm')
    const deployed = await fetch(`${platform.gatewayUrl}/t/${name}/functions/v1/deploy`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}` },
      body: form,
    })
    t.equal(deployed.status, 201, await deployed.text())
    const call = async (url: string) =>
      (
        await platform.tenantCall(name, 'POST', '/functions/v1/invoke/get', { key, body: url, type: 'text/plain' })
      ).text()
    received.bytes = 0
    t.match(await call(`http://${outside}:${port}/${name}`), new RegExp(`"status":200.*hello /${name}`, 's'))
    const sent = received.bytes
    t.match(await call('http://169.254.169.254/'), /ADDRESS_REJECTED/, name)
    t.match(await call('http://10.198.0.1:4400/'), /ADDRESS_REJECTED/, name)
    const listed = await platform.tenantCall(name, 'GET', '/functions/v1/get/invocations?limit=10', { key })
    const { invocations } = (await listed.json()) as { invocations: { egress_bytes: number }[] }
    t.equal(
      invocations.reduce((sum, { egress_bytes }) => sum + egress_bytes, 0),
      sent,
      `${name}: the bytes are counted once`,
    )
  }

  const object = '/storage/v1/object/system/file'
  const put = await platform.tenantCall('shared', 'POST', object, {
    key: shared.key,
    body: 'the text',
    type: 'text/plain',
  })
  t.equal(put.status, 200, await put.text())
  t.equal(await (await platform.tenantCall('shared', 'GET', object, { key: shared.key })).text(), 'the text')
  t.ok(
    (await s3.keys()).whole.some((key) => key.includes(shared.id)),
    'the file is in the bucket',
  )
  const ownPut = await platform.tenantCall('own', 'POST', object, { key: own.key, body: 'own', type: 'text/plain' })
  t.equal(ownPut.status, 200, await ownPut.text())
  t.notOk(
    (await s3.keys()).whole.some((key) => key.includes(own.id)),
    "a tenant's own runtime has no key of the bucket",
  )

  const { containers } = await platform.host.observe(
    { installation: platform.installation },
    AbortSignal.timeout(30_000),
  )
  const taken = containers.find(({ name }) => name.startsWith(`tenantry-${own.id}-runtime-`))?.name ?? ''
  const region = (last: number) => regionAddress(parseRange(range), last)
  const controlPort = new URL(platform.controlUrl).port
  const targets = [
    `${region(1)}:${controlPort}`,
    `${region(10)}:5432`,
    `${region(11)}:4402`,
    `${region(20)}:24401`,
    `${region(129)}:${controlPort}`,
    '10.198.1.2:24401',
    'gateway:4402',
    'runtime-0:24401',
    'localhost:4402',
    '127.0.0.1:4402',
    '0.0.0.0:4402',
    '[::1]:4402',
    '[::ffff:127.0.0.1]:4402',
    '0x7f.1:4402',
    '169.254.169.254:80',
  ]
  const { stdout } = await run('docker', [
    '-H',
    testEngine(),
    'exec',
    taken,
    '/usr/local/bin/node',
    '-e',
    attack,
    JSON.stringify([targets, `${outside}:${port}`]),
  ])
  const result = JSON.parse(stdout) as {
    statuses: Record<string, number>
    forged: number
    direct: string
    open: number
  }
  for (const [target, status] of Object.entries(result.statuses)) t.ok(status >= 400, `${target}: ${status}`)
  t.equal(Object.keys(result.statuses).length, targets.length)
  t.equal(result.forged, 407)
  t.not(result.direct, 'connected', 'without the proxy there is no way out')
  t.equal(result.open, 16, 'the connections of one tenant')
})
