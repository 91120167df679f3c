// The control plane reaches an Engine by a local socket, by mutual TLS, or by OpenSSH with known hosts, and rejects other ways.
import { once } from 'node:events'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { connect, type AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createServer, type TlsOptions } from 'node:tls'
import t, { type Test } from 'tap'
import { connectDocker, type DockerAddress } from '#control-plane/engines/docker/docker-connection.ts'
import { dockerHost } from '#control-plane/engines/docker/docker-host.ts'
import { sshArguments } from '#control-plane/engines/docker/ssh-agent.ts'
import { engineAddress, engineSocket, openScene, type Scene } from '#test/support/docker.ts'
import { startSshd } from '#test/support/sshd.ts'
import { makeAuthority } from '#test/support/tls.ts'

const { signal } = new AbortController()

async function temporary(t: Test): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'tenantry-docker-'))
  t.teardown(() => rm(directory, { recursive: true, force: true }))
  return directory
}

/** Checks lists, long responses, both directions of a command and aborted calls. */
async function worksOver(t: Test, scene: Scene, address: DockerAddress): Promise<void> {
  const host = dockerHost(address)
  t.teardown(() => host.close())
  t.equal((await host.info(signal)).name, (await scene.host.info(signal)).name)
  const worker = await scene.run('worker')
  t.same(
    (await host.observe(scene.owned, signal)).containers.map(({ name }) => name),
    [worker],
  )
  const text = 'x'.repeat(10_000_000)
  const { stdout } = await host.exec(worker, ['cat'], { input: text, signal })
  t.ok(stdout === text, '10 MB in and out')
  const caller = new AbortController()
  const reason = new Error('enough')
  const events = host.events(scene.owned, caller.signal)
  const next = events[Symbol.asyncIterator]().next()
  setTimeout(() => caller.abort(reason), 50)
  await t.rejects(next, reason)
  await Promise.all(Array.from({ length: 12 }, () => host.observe(scene.owned, signal)))
}

/** Opens a TLS listener in front of the Engine, as dockerd does. @returns its port */
async function openTlsProxy(t: Test, options: TlsOptions): Promise<number> {
  const proxy = createServer(
    { ...options, requestCert: true, rejectUnauthorized: true, allowHalfOpen: true } as TlsOptions,
    (client) => {
      const engine = connect({ path: engineSocket(), allowHalfOpen: true })
      client.on('error', () => engine.destroy())
      engine.on('error', () => client.destroy())
      client.pipe(engine).pipe(client)
      client.on('close', () => engine.destroy())
    },
  )
  proxy.on('tlsClientError', () => undefined)
  proxy.listen(0, '127.0.0.1')
  await once(proxy, 'listening')
  t.teardown(() => proxy.close())
  return (proxy.address() as AddressInfo).port
}

t.test('the host works over a local socket', async (t) => {
  await worksOver(t, openScene(t), { host: engineAddress() })
})

t.test('the host works over TLS with certificates on both sides, and rejects other certificates', async (t) => {
  const scene = openScene(t)
  const directory = await temporary(t)
  const [authority, foreignAuthority] = [
    await makeAuthority(join(directory, 'authority')),
    await makeAuthority(join(directory, 'foreign-authority')),
  ]
  const port = await openTlsProxy(t, { ...(await authority.issue('IP:127.0.0.1')), ca: authority.certificate })
  const tlsDirectory = await authority.clientDirectory(join(directory, 'client'))
  await worksOver(t, scene, { host: `tcp://127.0.0.1:${port}`, tlsDirectory })

  const isUnreachable = async (what: string, address: DockerAddress) => {
    const host = dockerHost(address)
    await t.rejects(
      host.info(signal),
      { code: 'ENGINE_UNREACHABLE', message: /^Cannot .*: the Docker Engine cannot be reached\.$/ },
      what,
    )
    host.close()
  }
  const foreignDirectory = await foreignAuthority.clientDirectory(join(directory, 'foreign-client'))
  await isUnreachable('a server certificate of another authority', {
    host: `tcp://127.0.0.1:${port}`,
    tlsDirectory: foreignDirectory,
  })
  await writeFile(join(foreignDirectory, 'ca.pem'), await readFile(join(tlsDirectory, 'ca.pem')))
  await isUnreachable('a client that the Engine does not trust', {
    host: `tcp://127.0.0.1:${port}`,
    tlsDirectory: foreignDirectory,
  })
  const misnamed = await openTlsProxy(t, {
    ...(await authority.issue('DNS:elsewhere.example')),
    ca: authority.certificate,
  })
  await isUnreachable("another host's certificate", { host: `tcp://127.0.0.1:${misnamed}`, tlsDirectory })
})

t.test('the host works over OpenSSH with known hosts, and rejects other keys', async (t) => {
  const scene = openScene(t)
  const { port, identityFile, foreignFile, knownHostsFile, wrongKnownHostsFile, logins } = await startSshd(
    t,
    await temporary(t),
    engineSocket(),
  )
  const host = `ssh://root@127.0.0.1:${port}`
  await worksOver(t, scene, { host, ssh: { identityFile, knownHostsFile } })
  const loginCount = await logins()
  t.ok(loginCount > 0 && loginCount < 60, `connections are reused: ${loginCount} logins`)

  const isUnreachable = async (what: string, address: DockerAddress) => {
    const host = dockerHost(address)
    await t.rejects(
      host.info(signal),
      { code: 'ENGINE_UNREACHABLE', message: /^Cannot .*: the Docker Engine cannot be reached\.$/ },
      what,
    )
    host.close()
  }
  await isUnreachable('a host with another key', { host, ssh: { identityFile, knownHostsFile: wrongKnownHostsFile } })
  await isUnreachable('an unknown host', { host, ssh: { identityFile, knownHostsFile: '/dev/null' } })
  await isUnreachable('a client key that the host does not admit', {
    host,
    ssh: { identityFile: foreignFile, knownHostsFile },
  })
  t.equal(await logins(), loginCount, 'no rejected connection logged in')
})

t.test('ssh runs nothing but the connection to the Engine, and never prompts', (t) => {
  const args = sshArguments(new URL('ssh://ops@host.example:2222'), { identityFile: '/keys/a b %h' })
  t.same(args.slice(args.indexOf('-p')), [
    '-p',
    '2222',
    '-l',
    'ops',
    '--',
    'host.example',
    'docker',
    'system',
    'dial-stdio',
  ])
  const settings = args.filter((_, index) => args[index - 1] === '-o')
  for (const setting of [
    'IdentityFile="/keys/a b %%h"',
    'BatchMode=yes',
    'StrictHostKeyChecking=yes',
    'ForwardAgent=no',
    'ClearAllForwardings=yes',
    'IdentitiesOnly=yes',
  ]) {
    t.ok(settings.includes(setting), setting)
  }
  t.same(sshArguments(new URL('ssh://[::1]'), {}).slice(-5), ['--', '::1', 'docker', 'system', 'dial-stdio'])
  t.end()
})

t.test('invalid addresses are rejected before anything is sent', (t) => {
  const invalid: [DockerAddress, RegExp][] = [
    [{ host: 'docker' }, /not a valid URL/],
    [{ host: '' }, /not a valid URL/],
    [{ host: 'http://127.0.0.1:2375' }, /Invalid protocol "http:\/\/"/],
    [{ host: 'tcp://127.0.0.1:2375' }, /requires TLS/],
    [{ host: 'unix://var/run/docker.sock' }, /absolute path/],
    [{ host: 'unix://' }, /absolute path/],
    [{ host: 'ssh://ops:secret@host' }, /cannot have a password/],
    [{ host: 'ssh://ops@host/var/run/docker.sock' }, /cannot have a path/],
    [{ host: 'ssh://-oProxyCommand=x' }, /not a valid URL|host/],
    [{ host: 'ssh://-l%20x@-oProxyCommand' }, /host|user/],
  ]
  for (const [address, message] of invalid) t.throws(() => connectDocker(address), { message }, address.host)
  t.throws(() => connectDocker({ host: 'tcp://127.0.0.1:2376', tlsDirectory: '/nowhere' }), { code: 'ENOENT' })
  t.end()
})

t.test('the environment does not change the address of the Engine', async (t) => {
  const before = process.env
  t.teardown(() => (process.env = before))
  for (const elsewhere of ['tcp://127.0.0.1:1', 'unix:///nowhere.sock']) {
    process.env = { ...before, DOCKER_HOST: elsewhere, DOCKER_TLS_VERIFY: '1' }
    const host = dockerHost({ host: engineAddress() })
    t.match(await host.info(signal), { apiVersion: /^1\./ }, elsewhere)
    host.close()
  }
})
