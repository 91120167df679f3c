// The Docker proxy for control planes on other hosts: which clients it serves. The Engine is a server of the test.
import { once } from 'node:events'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Duplex } from 'node:stream'
import t, { type Test } from 'tap'
import { issuePeerCertificate, issueServerCertificate, newAuthority } from '#control-plane/certificates/authority.ts'
import { dockerHost } from '#control-plane/engines/docker/docker-host.ts'
import { engineError } from '#control-plane/engines/docker/errors.ts'
import { readProxyConfig } from '#docker-proxy/config.ts'
import { engineSocket } from '#docker-proxy/engine-socket.ts'
import { createProxy } from '#docker-proxy/proxy.ts'
import { rules } from './support/calls.ts'

type Issued = ReturnType<typeof issuePeerCertificate>

/** Starts a proxy at 127.0.0.1 in front of a server that counts the calls it receives. */
async function openRemoteProxy(t: Test) {
  const directory = await mkdtemp(join(tmpdir(), 'tenantry-remote-proxy-'))
  const received: string[] = []
  const engine = createServer((request, response) => {
    received.push(`${request.method ?? ''} ${request.url ?? ''}`)
    const body = request.url === '/version' ? { ApiVersion: '1.41' } : { message: 'This node is not a swarm manager.' }
    const isDone = request.method === 'GET' || request.url?.endsWith('/exec') === true
    response.writeHead(isDone ? 200 : 503, { 'content-type': 'application/json' })
    response.end(JSON.stringify(responseTo(request.url ?? '') ?? body))
  })
  engine.on('upgrade', (_request, socket: Duplex) => {
    socket.write('HTTP/1.1 101 UPGRADED\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\n')
    const input: Buffer[] = []
    socket.on('data', (bytes: Buffer) => input.push(bytes))
    // It writes after the end of the input, in the Engine's frames: the stream, and the length of the text.
    socket.on('end', () => {
      const text = Buffer.concat(input)
      socket.end(Buffer.concat([Buffer.of(1, 0, 0, 0, 0, 0, 0, text.length), text]))
    })
  })
  engine.listen(join(directory, 'engine.sock'))
  await once(engine, 'listening')
  const authority = newAuthority('of the proxies', new Date())
  const { certificate, privateKey } = issueServerCertificate(authority, 'docker-proxy', ['127.0.0.1'], new Date())
  const { server, close } = createProxy({
    rules: { ...rules, spansHosts: true },
    engine: engineSocket(join(directory, 'engine.sock')),
    log: { warn: () => undefined },
    tls: { ca: authority.certificate, cert: certificate, key: privateKey },
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  const port = typeof address === 'object' ? address?.port : undefined
  t.teardown(async () => {
    await close()
    engine.close()
    await rm(directory, { recursive: true })
  })
  let clients = 0
  return {
    directory,
    authority,
    own: { certificate, privateKey },
    received,
    /** Returns a client with a certificate. */
    async connect(issued: Issued) {
      const tlsDirectory = join(directory, `client-${++clients}`)
      await writeCertificates(tlsDirectory, authority.certificate, issued)
      const host = dockerHost({ host: `tcp://127.0.0.1:${port ?? 0}`, tlsDirectory })
      t.teardown(() => host.close())
      return host
    },
  }
}

/** Returns the response of the test's Engine to a call about a network, a container or a command. */
function responseTo(url: string): unknown {
  const path = url.replace(/\?.*$/, '')
  if (path.endsWith('/networks')) return []
  if (/\/exec\/[^/]*\/json$/.test(path)) return { ContainerID: 'aa', Running: false, ExitCode: 0 }
  if (path.endsWith('/exec')) return { Id: 'bb' }
  const labels = { 'tenantry.installation': rules.installation, 'tenantry.stack': 't_0123456789abcdef0123' }
  return /\/containers\/[^/]*\/json$/.test(path) ? { Id: 'aa', Name: '/worker', Config: { Labels: labels } } : undefined
}

async function writeCertificates(directory: string, ca: string, { certificate, privateKey }: Issued): Promise<void> {
  await mkdir(directory)
  await Promise.all([
    writeFile(join(directory, 'ca.pem'), ca),
    writeFile(join(directory, 'cert.pem'), certificate),
    writeFile(join(directory, 'key.pem'), privateKey),
  ])
}

const { signal } = new AbortController()

t.test('A control plane with a certificate is served, and learns that the host is not a manager', async (t) => {
  const { authority, connect, received } = await openRemoteProxy(t)
  const host = await connect(issuePeerCertificate(authority, 'control plane', ['control-plane'], new Date()))
  await host.ping(signal)
  const labels = { installation: rules.installation, stack: 't_0123456789abcdef0123' }
  const spec = { name: `tenantry-${labels.stack}-net`, labels, internal: true, hostAddress: false, spansHosts: true }
  await t.rejects(host.createNetwork({ ...spec, subnet: '10.201.1.64/26' }, signal), { code: 'NOT_A_MANAGER' })
  t.ok(received.includes('POST /v1.41/networks/create'))
  await t.rejects(host.createNetwork({ ...spec, subnet: '10.99.1.64/26' }, signal), { code: 'ENGINE_FAILED' })
})

t.test('A command passes its input and its output over TLS', async (t) => {
  const { authority, connect } = await openRemoteProxy(t)
  const host = await connect(issuePeerCertificate(authority, 'control plane', ['control-plane'], new Date()))
  t.match(await host.exec('worker', ['cat'], { signal, input: 'hello' }), {
    code: 0,
    stdout: 'hello',
  })
})

t.test('A host whose name cannot be resolved counts as one that does not respond', async (t) => {
  for (const code of ['EAI_AGAIN', 'ENOTFOUND'])
    t.equal(engineError('read', Object.assign(new Error(code), { code })).code, 'ENGINE_UNREACHABLE', code)
})

t.test('No other client reaches the Engine', async (t) => {
  const { own, connect, received } = await openRemoteProxy(t)
  const others: [name: string, issued: Issued][] = [
    ['of another authority', issuePeerCertificate(newAuthority('another', new Date()), 'x', ['x'], new Date())],
    ['of a proxy', own],
  ]
  for (const [name, issued] of others) {
    const host = await connect(issued)
    await t.rejects(host.ping(signal), { code: 'ENGINE_UNREACHABLE' }, name)
  }
  t.same(received, [])
})

t.test('The port for other hosts needs certificates, and makes all networks overlay networks', async (t) => {
  const { directory, authority, own } = await openRemoteProxy(t)
  const tls = join(directory, 'tls')
  const variables = {
    TENANTRY_INSTALLATION: rules.installation,
    TENANTRY_DOCKER_PROXY_SOCKET: '/tmp/docker-proxy.sock',
    TENANTRY_DOCKER_PROXY_IMAGES: 'tenantry/postgres',
    TENANTRY_NETWORK_RANGE: '10.201.0.0/16',
    TENANTRY_COMPOSE_PROJECT: 'tenantry',
  }
  t.match(readProxyConfig(variables), { remote: undefined, rules: { spansHosts: false } })
  const withPort = { ...variables, TENANTRY_DOCKER_PROXY_PORT: '2376' }
  t.throws(() => readProxyConfig(withPort), /TENANTRY_DOCKER_PROXY_TLS/)
  const complete = { ...withPort, TENANTRY_DOCKER_PROXY_TLS: tls }
  t.throws(() => readProxyConfig(complete), /The file ca\.pem in TENANTRY_DOCKER_PROXY_TLS cannot be read\./)
  await writeCertificates(tls, authority.certificate, own)
  t.match(readProxyConfig(complete), {
    remote: { port: 2376, tls: { ca: authority.certificate, cert: own.certificate } },
    rules: { spansHosts: true },
  })
})
