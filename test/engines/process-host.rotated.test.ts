// The host of processes, through its socket as the control plane calls it: it creates and adopts its own objects, rejects foreign
// ones, runs nothing but its programs, and removes what it owns.
import { randomBytes } from 'node:crypto'
import { chmod, chown, mkdir, mkdtemp, readdir, readFile, rename, rm, symlink, writeFile } from 'node:fs/promises'
import { request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { hostPath } from '@tenantry/contract'
import pino from 'pino'
import t, { type Test } from 'tap'
import type { ContainerSpec, NetworkSpec } from '#control-plane/engines/container-host.ts'
import { processHost } from '#control-plane/engines/process/host-client.ts'
import { HostPaths } from '#local/containers/host-paths.ts'
import { serveHost } from '#local/containers/host-server.ts'
import { openProcessHost } from '#local/containers/process-host.ts'
import { postgresBinaries } from '#local/process/postgres-files.ts'
import { RunRecords } from '#local/process/run-records.ts'
import { serviceIdentity } from '#local/process/unprivileged.ts'
import { freePort } from '#test/support/postgres.ts'
import { until } from '#test/support/until.ts'

const installation = 'test-installation'
const { signal } = new AbortController()
const empty = { containers: [], networks: [], volumes: [], unlabelledVolumes: [] }

const identity = await serviceIdentity()
const data = await mkdtemp(join(tmpdir(), 'tenantry-host-'))
await chmod(data, 0o711)
if (identity !== undefined) await chown(data, identity.uid, identity.gid)
await mkdir(join(data, 'run'))
const socket = join(data, 'host')
const ports = { postgres: await freePort(), runtime: await freePort() }
const binaries = await postgresBinaries()

const logged: string[] = []
const log = pino({ level: 'error', base: null }, { write: (line) => void logged.push(line) })

async function openHost() {
  const opened = await openProcessHost({
    paths: new HostPaths(data),
    binaries,
    identity,
    runs: new RunRecords(join(data, 'run')),
    programs: {
      postgresRoot: binaries.root,
      ports,
      gatewayUrl: 'http://127.0.0.1:1',
      logLevel: 'info',
      runtimeSettings: {},
    },
  })
  const stopServing = await serveHost(opened, socket, undefined, log)
  return async () => {
    await stopServing()
    await opened.close(signal)
  }
}

let close = await openHost()
const host = processHost(socket)
t.teardown(async () => {
  await close()
  await rm(data, { recursive: true, force: true })
})

let stacks = 0

/** Returns names and specifications of one stack, which is removed at the end of the test. */
function openScene(t: Test) {
  const stack = `t_${randomBytes(10).toString('hex')}`
  const owned = { installation, stack }
  const labels = { ...owned, service: 'postgres', spec: '0123abcd' }
  const name = (suffix: string) => `tenantry-${stack}-${suffix}`
  const subnet = `127.${64 + (process.pid % 60)}.${++stacks}`
  const network: NetworkSpec = {
    name: name('net'),
    labels: owned,
    subnet: `${subnet}.0/28`,
    internal: true,
    hostAddress: false,
  }
  const container: ContainerSpec = {
    name: name('postgres-0123abcd'),
    labels,
    image: 'postgres',
    command: ['-c', 'max_connections=20'],
    environment: { TENANTRY_VOLUME: name('data') },
    user: '10002:10002',
    volumes: [{ volume: name('data'), path: '/var/lib/postgresql', readOnly: false }],
    scratch: {},
    networks: [{ network: network.name, aliases: ['postgres'], address: `${subnet}.2` }],
    published: [],
    health: { command: ['pg_isready'], intervalSeconds: 60, timeoutSeconds: 10, retries: 2, startSeconds: 60 },
    resources: { memoryBytes: 256 * 2 ** 20, cpuMillis: 500, pids: 64 },
    stopSeconds: 10,
  }
  const volume = { name: name('data'), labels: owned }
  const permit = () =>
    host.addFiles(volume.name, 'postgres', container.user, { initialize: `${volume.name}\n` }, labels, signal)
  const remove = async () => {
    await host.removeContainer(container.name, owned, signal)
    await host.removeNetwork(network.name, owned, signal)
    await host.removeVolume(volume.name, owned, signal)
  }
  t.teardown(remove)
  const observe = async () => {
    const [found] = (await host.observe(owned, signal)).containers
    if (found === undefined) throw new Error('The container does not exist.')
    return found
  }
  /** Starts a Postgres and waits until it is healthy. */
  const start = async () => {
    await host.createNetwork(network, signal)
    await host.createVolume(volume, signal)
    await permit()
    await host.createContainer(container, signal)
    await host.startContainer(container.name, signal)
    await until(async () => (await observe()).health === 'healthy', 'a healthy Postgres')
  }
  const psql = (sql: string) =>
    host.exec(container.name, ['psql', '-X', '-q', '-A', '-t', '-U', 'postgres', '-d', 'home', '-f', '-'], {
      input: sql,
      signal,
    })
  return { owned, labels, name, network, container, volume, permit, remove, observe, start, psql }
}

t.test('The host describes the machine, its two programs and what it does not enforce', async (t) => {
  const info = await host.info(signal)
  t.ok(info.memoryBytes > 0 && info.cpus > 0 && (info.disk?.freeBytes ?? 0) > 0)
  t.match(info.warnings.join('\n'), /no network isolation, no limit of CPU time or disk space/)
  const image = await host.image('postgres', signal)
  t.match(image, { id: /^sha256:[0-9a-f]{64}$/, component: 'postgres' })
  t.same(await host.image(image?.id ?? '', signal), image)
  t.match(await host.image('runtime', signal), { component: 'runtime' })
  t.equal(await host.image('debian:trixie-slim', signal), undefined)
})

t.test('A stack is created once, observed as requested, and removed', async (t) => {
  const { owned, network, container, volume, permit, remove, observe } = openScene(t)
  const create = async () => {
    await host.createNetwork(network, signal)
    await host.createVolume(volume, signal)
    await host.createContainer(container, signal)
  }
  await create()
  await Promise.all([create(), create()])
  const observed = await host.observe(owned, signal)
  t.match(observed, {
    containers: [
      {
        name: container.name,
        labels: container.labels,
        state: 'created',
        resources: container.resources,
        networks: { [network.name]: { aliases: ['postgres'], address: container.networks[0]?.address } },
      },
    ],
    networks: [{ name: network.name, subnet: network.subnet, internal: true, members: [container.name] }],
    volumes: [volume],
  })
  t.same([observed.containers.length, observed.networks.length, observed.volumes.length], [1, 1, 1])
  await permit()
  await Promise.all([1, 2].map(() => host.startContainer(container.name, signal)))
  await until(async () => (await observe()).health === 'healthy')
  t.match(await observe(), { state: 'running', restarts: 0 })
  await t.rejects(host.removeVolume(volume.name, owned, signal), { code: 'ENGINE_FAILED', message: /in use/ })
  await host.stopContainer(container.name, 10, signal)
  t.match(await observe(), { state: 'exited', exitCode: 0 })
  for (const round of ['first', 'again']) {
    await remove()
    t.same(await host.observe(owned, signal), empty, round)
  }
})

t.test('An object of another owner is rejected and stays', async (t) => {
  const { container, network, volume } = openScene(t)
  await host.createNetwork(network, signal)
  await host.createVolume(volume, signal)
  await host.createContainer(container, signal)
  const other = { installation: 'other', stack: 'other' }
  const foreign = { code: 'FOREIGN_OBJECT' }
  await t.rejects(host.createNetwork({ ...network, labels: other }, signal), foreign)
  await t.rejects(host.createVolume({ ...volume, labels: other }, signal), foreign)
  await t.rejects(host.createContainer({ ...container, labels: other }, signal), foreign)
  await t.rejects(host.removeContainer(container.name, other, signal), foreign)
  await t.rejects(host.removeNetwork(network.name, other, signal), foreign)
  await t.rejects(host.removeVolume(volume.name, other, signal), foreign)
  t.same(await host.observe({ installation: 'other' }, signal), empty)
  await t.rejects(
    host.createNetwork({ ...network, name: `${network.name}-b` }, signal),
    { code: 'SUBNET_TAKEN' },
    'a subnet has one network',
  )
})

t.test('Names, images and addresses that are not its own are rejected', async (t) => {
  const { container, network, volume, labels } = openScene(t)
  for (const name of ['../escape', 'tenantry-/etc', 'other', 'tenantry-a/../../b'])
    await t.rejects(host.createVolume({ ...volume, name }, signal), { code: 'ENGINE_FAILED', message: /Invalid name/ })
  await t.rejects(host.createNetwork({ ...network, subnet: '10.0.0.0/28' }, signal), { message: /Invalid call/ })
  await t.rejects(host.createContainer(container, signal), { code: 'VOLUME_MISSING' })
  await host.createVolume(volume, signal)
  await t.rejects(host.createContainer({ ...container, image: 'debian' }, signal), { code: 'IMAGE_MISSING' })
  for (const name of ['LD_PRELOAD', 'PATH', 'NODE_OPTIONS', 'XTENANTRY_A', 'TENANTRY_'])
    await t.rejects(host.createContainer({ ...container, environment: { [name]: 'x' } }, signal), {
      message: /Invalid call: \/0\/environment/,
    })
  await t.rejects(host.writeFiles(volume.name, 'postgres', '1', { '../a': '' }, labels, signal), {
    message: /Invalid name/,
  })
  await t.rejects(host.exec(container.name, ['true'], { signal }), { code: 'NOT_FOUND' })
  t.same(await readdir(join(data, 'containers/programs')), [])
})

t.test('An unexpected error is logged', async (t) => {
  const response = await new Promise<string>((resolve, reject) => {
    const sent = request({ socketPath: socket, method: 'POST', path: hostPath('info') }, (received) => {
      text(received).then(resolve, reject)
    })
    sent.on('error', reject).end('{')
  })
  t.match(response, /Its log has the reason/)
  t.equal(logged.length, 1)
  t.match(JSON.parse(logged[0] ?? ''), { call: '/v1/info', err: { message: /JSON/ } })
})

t.test('A file never follows a link of the volume', async (t) => {
  const { volume, labels } = openScene(t)
  await host.createVolume(volume, signal)
  const target = join(data, 'target')
  await writeFile(target, 'untouched')
  await symlink(target, join(data, 'containers/volumes', volume.name, 'data/initialize'))
  await host.addFiles(volume.name, 'postgres', '10002:10002', { initialize: 'text' }, labels, signal)
  t.equal(await readFile(target, 'utf8'), 'untouched')
})

t.test('A Postgres does not start on an empty volume without permission', async (t) => {
  const { network, volume, container, observe } = openScene(t)
  await host.createNetwork(network, signal)
  await host.createVolume(volume, signal)
  await host.createContainer(container, signal)
  await host.startContainer(container.name, signal)
  await until(async () => (await observe()).restarts > 0, 'a restart')
  const lines: string[] = []
  for await (const { text } of host.logs(container.name, { follow: false, tail: 100 }, signal)) lines.push(text)
  t.match(lines.join('\n'), /holds no data directory, and the control plane has not permitted to create one/)
  t.same(await readdir(join(data, 'containers/volumes', volume.name, 'data')), ['lock'])
})

t.test('Programs run inside, and are killed with their caller', async (t) => {
  const { container, start, psql } = openScene(t)
  await start()
  t.match(
    await psql("create table a (id int, b text);\ninsert into a values (1, null), (2, 'x|y');\nselect * from a;"),
    {
      code: 0,
      stdout: '1|\n2|x|y\n',
      stderr: '',
    },
  )
  t.match(await psql('select 1/0'), { code: 3, stdout: '', stderr: /22012 division by zero/ })
  t.match(await host.exec(container.name, ['sh', '-c', 'echo out; echo err >&2; exit 7'], { signal }), {
    code: 7,
    stdout: 'out\n',
    stderr: 'err\n',
  })
  await t.rejects(host.exec(container.name, ['yes'], { signal, maxOutputBytes: 1_000 }), { code: 'ENGINE_FAILED' })
  const abort = new AbortController()
  const marker = `4${process.pid}`
  const sleeping = host.exec(container.name, ['sleep', marker], { signal: abort.signal })
  const isRunning = async () =>
    (
      await host.exec(container.name, ['sh', '-c', `cat /proc/[0-9]*/cmdline | tr '\\0' ' '`], { signal })
    ).stdout.includes(`sleep ${marker}`)
  await until(isRunning, 'the program')
  abort.abort(new Error('the caller left'))
  await t.rejects(sleeping, { message: 'the caller left' })
  await until(async () => !(await isRunning()), 'the end of the program')
  const chunks: Buffer[] = []
  async function* input() {
    for (let at = 0; at < 100; at++) yield Buffer.alloc(10_000, 'a')
  }
  for await (const chunk of host.execStream(container.name, ['cat'], { input: input(), signal }))
    chunks.push(Buffer.from(chunk))
  t.equal(Buffer.concat(chunks).length, 1_000_000)
  await rm(join(data, 'containers/programs', container.name, 'work'), { recursive: true })
  await t.rejects(host.exec(container.name, ['true'], { signal }), { message: /could not be started/ })
})

t.test('A killed Postgres runs again with its data, and the event is reported', async (t) => {
  const { owned, container, start, psql, observe } = openScene(t)
  await start()
  t.match(await psql('create table kept (id int); insert into kept values (7);'), { code: 0, stderr: '' })
  const events: string[] = []
  const listening = new AbortController()
  const listener = (async () => {
    for await (const { what } of host.events(owned, listening.signal)) events.push(what)
  })().catch(() => undefined)
  const { pid } = JSON.parse(await readFile(join(data, 'run', `${container.name}.json`), 'utf8')) as { pid: number }
  process.kill(pid, 'SIGKILL')
  await until(async () => (await observe()).restarts === 1, 'a restart')
  // The listener is registered by now, and sees the next end.
  await host.stopContainer(container.name, 10, signal)
  await host.startContainer(container.name, signal)
  await until(() => events.includes('container start'), 'the event')
  await until(async () => (await observe()).health === 'healthy', 'health')
  t.match(await psql('select id from kept'), { stdout: '7\n' })
  listening.abort()
  await listener
  t.ok((await host.stats(container.name, signal)).memoryBytes > 0)
  t.ok(Object.values(await host.volumeBytes(owned, signal)).every((bytes) => bytes > 10_000_000))
})

t.test('Programs that ran start again with the host, and stopped ones do not', async (t) => {
  const running = openScene(t)
  await running.start()
  await running.psql('create table kept (id int); insert into kept values (7);')
  const stopped = openScene(t)
  await stopped.start()
  await stopped.start()
  await host.stopContainer(stopped.container.name, 10, signal)
  await close()
  await t.rejects(host.observe(running.owned, signal), { code: 'ENGINE_UNREACHABLE' })
  const programs = join(data, 'containers/programs')
  const record = await readFile(join(programs, running.container.name, 'container.json'), 'utf8')
  await mkdir(join(programs, 'tenantry-other'))
  await writeFile(
    join(programs, 'tenantry-other/container.json'),
    record.replace('"image":"postgres"', '"image":"debian"').replaceAll(running.container.name, 'tenantry-other'),
  )
  await t.rejects(openHost(), { code: 'IMAGE_MISSING' })
  t.same(await readdir(join(data, 'run')), [], 'a failed start leaves no process')
  await rm(join(programs, 'tenantry-other'), { recursive: true })
  // An interrupted write, and a directory of the file system.
  await writeFile(join(data, 'containers/networks', `${running.network.name}.json.next`), '{')
  await mkdir(join(data, 'containers/volumes/lost+found'))
  close = await openHost()
  await until(async () => (await running.observe()).health === 'healthy', 'health')
  t.match(await running.psql('select id from kept'), { stdout: '7\n' })
  t.match(await stopped.observe(), { state: 'exited' })
  const follower = host.logs(running.container.name, { follow: true, tail: 1 }, signal)[Symbol.asyncIterator]()
  t.match((await follower.next()).value, { at: /^\d{4}-.*Z$/, stream: /^std(out|err)$/ })
  await running.psql("do $$ begin raise log 'a later line'; end $$")
  for (;;) {
    const next = await follower.next()
    if (next.done === true || next.value.text.includes('a later line')) break
  }
  await follower.return?.()
  t.pass('a follower receives later lines')
})

t.test('A directory that another user can replace is refused', async (t) => {
  await close()
  const sockets = join(data, 's')
  await rename(sockets, `${sockets}.moved`)
  await symlink(`${sockets}.moved`, sockets)
  await t.rejects(openHost(), { name: 'ConfigurationError', message: /must be a directory that belongs to/ })
  await rm(sockets)
  await rename(`${sockets}.moved`, sockets)
  close = await openHost()
})
