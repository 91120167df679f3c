// Several hosts on this machine, joined by Docker Swarm. A host is a network namespace and a process namespace with an engine of
// its own, so that it can be cut off and die as a machine does.
import { execFile, spawn, type ChildProcess } from 'node:child_process'
import { randomBytes, randomInt } from 'node:crypto'
import { once } from 'node:events'
import { mkdir, mkdtemp, open, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import type { Test } from 'tap'
import { shareImages, type SharedLayer } from './shared-images.ts'
import { makeAuthority } from './tls.ts'

const run = promisify(execFile)
const startMilliseconds = 60_000

/** A host of the lab. */
export interface LabHost {
  id: string
  /** Its address on the lab's network. */
  address: string
  /** Address of its engine, `tcp://…`. Client and engine authenticate with certificates. */
  engine: string
  tlsDirectory: string
  /** Path of its engine's socket. */
  socket: string
  /** Runs the Docker client on its engine. @returns the trimmed output, and for `logs` also what containers write to stderr */
  docker(...args: string[]): Promise<string>
  /** Ends all its processes at once, as the loss of power does. */
  kill(): void
  /** Starts it after it was killed, with the data that it had. */
  start(): Promise<void>
  /** Disconnects it from the lab's network, or connects it again. */
  connect(isConnected: boolean): Promise<void>
}

export interface SwarmLab {
  hosts: readonly [LabHost, LabHost, LabHost]
  /** Address of this machine on the lab's network. */
  here: string
}

/**
 * Starts three hosts with the images of the test's engine, all of them managers of one swarm, which needs root. The end of the
 * test removes them.
 */
export async function startSwarmLab(t: Pick<Test, 'teardown'>): Promise<SwarmLab> {
  const directory = await mkdtemp(join(tmpdir(), 'tenantry-lab-'))
  const name = `tl${randomBytes(3).toString('hex')}`
  const net = `198.18.${randomInt(256)}`
  const here = `${net}.254`
  const ip = (...args: string[]) => run('ip', args)
  const authority = await makeAuthority(join(directory, 'authority'))
  const tlsDirectory = await authority.clientDirectory(join(directory, 'client'))

  // Docker filters what passes a bridge of its own namespace, so this bridge has one to itself.
  const bridge = `${name}b`
  const namespaces = [bridge]
  const hosts: LabHost[] = []
  t.teardown(async () => {
    for (const host of hosts) host.kill()
    await sleep(500)
    for (const namespace of namespaces) await ip('netns', 'delete', namespace)
    await rm(directory, { recursive: true, force: true, maxRetries: 10 })
  })
  await ip('netns', 'add', bridge)
  await ip('-n', bridge, 'link', 'add', 'br0', 'type', 'bridge')
  await ip('-n', bridge, 'link', 'set', 'br0', 'up')
  await ip('link', 'add', `${name}h`, 'type', 'veth', 'peer', 'name', 'here', 'netns', bridge)
  await ip('-n', bridge, 'link', 'set', 'here', 'master', 'br0', 'up')
  await ip('address', 'add', `${here}/24`, 'dev', `${name}h`)
  await ip('link', 'set', `${name}h`, 'up')

  for (const number of [1, 2, 3]) {
    const namespace = `${name}${number}`
    const address = `${net}.${number}`
    await ip('netns', 'add', namespace)
    namespaces.push(namespace)
    const [near, far] = [`host${number}`, 'eth0']
    await ip('-n', bridge, 'link', 'add', near, 'type', 'veth', 'peer', 'name', far, 'netns', namespace)
    await ip('-n', bridge, 'link', 'set', near, 'master', 'br0', 'up')
    await ip('-n', namespace, 'address', 'add', `${address}/24`, 'dev', far)
    for (const link of [far, 'lo']) await ip('-n', namespace, 'link', 'set', link, 'up')
    await ip('-n', namespace, 'route', 'add', 'default', 'via', here)
    const own = join(directory, `host-${number}`)
    await mkdir(join(own, 'data'), { recursive: true })
    const layers = await shareImages(join(own, 'data'))
    const { cert, key } = await authority.issue(`IP:${address}`)
    await Promise.all([
      writeFile(join(own, 'ca.pem'), authority.certificate),
      writeFile(join(own, 'cert.pem'), cert),
      writeFile(join(own, 'key.pem'), key),
    ])
    const connect = async (isConnected: boolean) => {
      await ip('-n', bridge, 'link', 'set', near, isConnected ? 'up' : 'down')
    }
    hosts.push(labHost({ id: `host-${number}`, address, namespace, directory: own, layers, tlsDirectory, connect }))
  }
  const [first, second, third] = hosts as [LabHost, LabHost, LabHost]
  await Promise.all(hosts.map((host) => host.start()))
  await joinSwarm(first, [second, third])
  return { hosts: [first, second, third], here }
}

interface LabHostOptions extends Pick<LabHost, 'id' | 'address' | 'tlsDirectory' | 'connect'> {
  namespace: string
  directory: string
  /** Layers of images, to be mounted before its engine starts. */
  layers: readonly SharedLayer[]
}

function labHost({ id, address, namespace, directory, layers, tlsDirectory, connect }: LabHostOptions): LabHost {
  const at = (file: string) => join(directory, file)
  const socket = `unix://${at('docker.sock')}`
  let machine: ChildProcess | undefined
  const docker = async (...args: string[]) => {
    const { stdout, stderr } = await run('docker', ['-H', socket, ...args], { maxBuffer: 2 ** 24 })
    return (args[0] === 'logs' ? stdout + stderr : stdout).trim()
  }
  return {
    id,
    address,
    engine: `tcp://${address}:2376`,
    tlsDirectory,
    socket: at('docker.sock'),
    docker,
    connect,
    kill() {
      // The end of a process namespace's first process ends all others in it.
      machine?.kill('SIGKILL')
      machine = undefined
    },
    async start() {
      await Promise.all([
        // A machine loses these when it starts again.
        ...['exec', 'containerd-state', 'containerd.sock', 'docker.sock', 'docker.pid'].map((file) =>
          rm(at(file), { recursive: true, force: true }),
        ),
        writeFile(at('daemon.json'), '{"default-address-pools": [{"base": "172.30.0.0/16", "size": 24}]}\n'),
        writeFile(at('containerd.toml'), 'version = 2\ndisabled_plugins = ["io.containerd.grpc.v1.cri"]\n'),
      ])
      const log = await open(at('log'), 'a')
      const child = spawn(
        'nsenter',
        [`--net=/run/netns/${namespace}`, '--', ...inProcessNamespace(directory, layers, address)],
        {
          cwd: '/',
          stdio: ['ignore', log.fd, log.fd],
          detached: true,
        },
      )
      await once(child, 'spawn')
      await log.close()
      machine = child
      const deadline = Date.now() + startMilliseconds
      while (
        !(await docker('version').then(
          () => true,
          () => false,
        ))
      ) {
        if (child.exitCode !== null || Date.now() > deadline)
          throw new Error(`${id} did not start:\n${(await readFile(at('log'), 'utf8')).slice(-4_000)}`)
        await sleep(50)
      }
    },
  }
}

/** Returns the command that runs an engine as all processes of a machine. */
function inProcessNamespace(directory: string, layers: readonly SharedLayer[], address: string): string[] {
  const at = (file: string) => join(directory, file)
  const containerd = [
    'containerd',
    `--root=${at('containerd')}`,
    `--state=${at('containerd-state')}`,
    `--address=${at('containerd.sock')}`,
    `--config=${at('containerd.toml')}`,
    '--log-level=warn',
  ]
  const dockerd = [
    'dockerd',
    `--data-root=${at('data')}`,
    `--exec-root=${at('exec')}`,
    `--pidfile=${at('docker.pid')}`,
    `--config-file=${at('daemon.json')}`,
    `--containerd=${at('containerd.sock')}`,
    `--host=unix://${at('docker.sock')}`,
    `--host=tcp://${address}:2376`,
    '--tlsverify',
    `--tlscacert=${at('ca.pem')}`,
    `--tlscert=${at('cert.pem')}`,
    `--tlskey=${at('key.pem')}`,
    '--log-level=warn',
  ]
  const program = [
    // The engine makes mounts of these directories that are none, which would hide those below them.
    ...[at('data'), at('data/overlay2')].map((path) => `mount --bind ${path} ${path} && mount --make-shared ${path}`),
    ...layers.map(({ from, to }) => `mount --bind ${from} ${to}`),
    `${containerd.join(' ')} &`,
    `while ! [ -S ${at('containerd.sock')} ]; do sleep 0.05; done`,
    `${dockerd.join(' ')} &`,
    // The shell reaps processes whose parents have ended, as the first process of a machine does.
    'while :; do wait; sleep 0.1; done',
  ].join('\n')
  return ['unshare', '--pid', '--fork', '--kill-child', '--mount-proc', 'sh', '-c', program]
}

async function joinSwarm(first: LabHost, others: readonly LabHost[]): Promise<void> {
  const own = ({ address }: LabHost) => ['--advertise-addr', address, '--listen-addr', address]
  await first.docker('swarm', 'init', ...own(first), '--default-addr-pool', '172.29.0.0/16')
  const token = await first.docker('swarm', 'join-token', '--quiet', 'manager')
  for (const host of others) await host.docker('swarm', 'join', '--token', token, ...own(host), `${first.address}:2377`)
}
