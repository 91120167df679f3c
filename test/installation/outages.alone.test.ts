// The compose platform recovers by itself from crashes and restarts of the Docker Engine, and from `docker kill` of its
// containers.
import { execFile } from 'node:child_process'
import { stat } from 'node:fs/promises'
import { promisify } from 'node:util'
import t, { type Test } from 'tap'
import { ensureEngine, type Engine } from '#scripts/engine.ts'
import {
  overTls,
  remaining,
  removePlatform,
  startComposePlatform,
  type ComposePlatform,
} from '#test/support/compose-platform.ts'
import { effort } from '#test/support/effort.ts'
import { until } from '#test/support/until.ts'

const run = promisify(execFile)
const services = ['database', 'docker-proxy', 'watchdog', 'control-plane', 'gateway', 'caddy']
const tenants = { shared: 'Free', dedicated: 'Pro' }

async function createTenants({ controlUrl, key, region }: ComposePlatform): Promise<void> {
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json', prefer: 'wait=60' }
  for (const [name, plan] of Object.entries(tenants)) {
    const response = await fetch(`${controlUrl}/v1/tenants`, {
      method: 'POST',
      headers,
      body: JSON.stringify({ name, plan, region }),
    })
    const text = await response.text()
    if (!/"status":"ready"/.test(text)) throw new Error(`the tenant ${name} is not ready: ${response.status} ${text}`)
  }
}

/** Returns the last start of each running container of the platform and its tenants, by container name. */
async function starts({ docker, name, installation }: ComposePlatform): Promise<Map<string, string>> {
  const labels = [`com.docker.compose.project=${name}`, `tenantry.installation=${installation}`]
  const lists = await Promise.all(labels.map((label) => docker.listContainers({ filters: { label: [label] } })))
  // A container may be replaced after the list was read.
  const found = await Promise.all(
    lists.flat().map(({ Id }) =>
      docker
        .getContainer(Id)
        .inspect()
        .catch(() => undefined),
    ),
  )
  return new Map(
    found.flatMap((container) =>
      container?.State.Running === true ? [[container.Name, container.State.StartedAt] as const] : [],
    ),
  )
}

/** Returns the state of a container, for the message of a failure. */
async function stateOf({ docker }: ComposePlatform, name: string): Promise<object> {
  const container = await docker
    .getContainer(name.slice(1))
    .inspect()
    .catch(() => undefined)
  return { name, state: container?.State, restart: container?.HostConfig.RestartPolicy }
}

/** Waits until all containers run, tenants are served, and the control plane reaches the engine through docker-proxy. */
async function untilServed(platform: ComposePlatform, containers: readonly string[], what: string): Promise<void> {
  const missing = async () => {
    const running = await starts(platform)
    return containers.filter((container) => !running.has(container))
  }
  await until(async () => (await missing()).length === 0, `${what}: every container runs`).catch(
    async (cause: unknown) => {
      throw new Error(
        `down: ${JSON.stringify(await Promise.all((await missing()).map((container) => stateOf(platform, container))))}`,
        { cause },
      )
    },
  )
  for (const tenant of Object.keys(tenants)) {
    const isServed = async () => (await overTls(platform, `${tenant}.localhost`, '/health')) === 200
    await until(isServed, `${what}: a request to the ${tenant} tenant succeeds`)
  }
  // The region must be observed after this moment.
  const moment = new Date().toISOString()
  await until(async () => {
    // Keep-alive connections to killed services break.
    const headers = { authorization: `Bearer ${platform.key}` }
    const response = await fetch(`${platform.controlUrl}/v1/regions`, { headers }).catch(() => undefined)
    if (response?.status !== 200) return false
    const { regions } = (await response.json()) as {
      regions: { conditions: { type: string; status: string; observed_at: string }[] }[]
    }
    const ready = regions[0]?.conditions.find(({ type }) => type === 'Ready')
    return ready?.status === 'True' && ready.observed_at > moment
  }, `${what}: the control plane reaches the engine`)
}

const outages: Readonly<Record<string, (engine: Engine) => Promise<void>>> = {
  'kill -9 of dockerd': (engine) => engine.kill(),
  'kill -9 of dockerd and containerd': (engine) => engine.kill('dockerd', 'containerd'),
  'a clean restart of dockerd': async () => undefined,
}
/** Number of outages with and without live-restore. The small run takes the first two with it, and the last two without. */
const outagesOfEach = effort({ small: 2, full: 3 })

async function survivesOutages(
  t: Test,
  platform: ComposePlatform,
  containers: readonly string[],
  engine: Engine,
  isLiveRestore: boolean,
): Promise<void> {
  const settings = isLiveRestore ? { 'live-restore': true } : {}
  const all = Object.entries(outages)
  for (const [outage, end] of isLiveRestore ? all.slice(0, outagesOfEach) : all.slice(-outagesOfEach)) {
    const before = await starts(platform)
    await end(engine)
    await engine.restart(settings)
    await t.resolves(untilServed(platform, containers, outage), outage)
    if (!isLiveRestore) continue
    const after = await starts(platform)
    // docker-proxy and watchdog restart to get the engine's new socket.
    const others = containers.filter((container) => !/docker-proxy|watchdog/.test(container))
    const startsOf = (some: ReadonlyMap<string, string>) => others.map((container) => [container, some.get(container)])
    t.same(startsOf(after), startsOf(before), `${outage}: no other container was restarted`)
  }
}

t.test('The compose platform recovers by itself', { timeout: 900_000 }, async (t) => {
  const engine = await ensureEngine()
  const platform = await startComposePlatform(t)
  t.teardown(() => engine.restart())
  const { docker } = platform
  const label = [`tenantry.installation=${platform.installation}`]
  await createTenants(platform)
  const names = [...(await starts(platform)).keys()]
  t.ok(
    names.length >= services.length + 4,
    'the list contains the Postgres and the runtime of the region and of the tenant',
  )

  await t.test('deploy/setup prints the settings for daemon.json', async (t) => {
    t.match(platform.setupOutput, /"live-restore": true\n.*systemctl reload docker/s)
  })

  await t.test('The platform recovers from outages of the engine', (t) =>
    survivesOutages(t, platform, names, engine, false),
  )

  await t.test('The platform recovers from docker kill of its containers', async (t) => {
    // docker-proxy and watchdog restart each other, so the test kills one at a time.
    for (const killed of [
      services.filter((service) => service !== 'watchdog' && service !== 'docker-proxy'),
      ['docker-proxy'],
      ['watchdog'],
    ]) {
      const before = await starts(platform)
      for (const service of killed) await (await platform.container(service)).kill()
      await t.resolves(untilServed(platform, names, killed.join(', ')), killed.join(', '))
      const after = await starts(platform)
      for (const service of killed) {
        const { Name } = await (await platform.container(service)).inspect()
        t.not(after.get(Name), before.get(Name), `${service} was restarted`)
      }
    }
  })

  await t.test("The platform recovers from docker kill of the tenants' containers", async (t) => {
    for (const { Id } of await docker.listContainers({ filters: { label } })) await docker.getContainer(Id).kill()
    await t.resolves(untilServed(platform, names, 'docker kill'))
  })

  await t.test('A container that an operator stops stays stopped', async (t) => {
    const [caddy, gateway] = [await platform.container('caddy'), await platform.container('gateway')]
    await caddy.stop()
    await gateway.kill()
    await until(async () => (await gateway.inspect()).State.Running, 'the gateway runs')
    t.equal((await caddy.inspect()).State.Running, false)
    await caddy.start()
  })

  await t.test('With live-restore an outage of the engine stops no container', async (t) => {
    await engine.restart({ 'live-restore': true })
    await untilServed(platform, names, 'a start with live-restore')
    await survivesOutages(t, platform, names, engine, true)
  })

  await t.test('deploy/setup prints no warning with live-restore', async (t) => {
    const output = await platform.setUp()
    t.notMatch(output, /warning/)
    t.match(output, /ready: docker compose up -d/)
  })

  await t.test('deploy/remove lists what it leaves and how to remove it', async (t) => {
    // An engine creates a removed volume again, without labels.
    const { Volumes: volumes } = await docker.listVolumes({ filters: { label } })
    const volume = volumes.find(({ Name }) => /^tenantry-t_.*-data$/.test(Name))?.Name ?? ''
    await (await platform.container('control-plane')).stop()
    const users = await docker.listContainers({ all: true, filters: { volume: [volume] } })
    for (const { Id } of users) await docker.getContainer(Id).remove({ force: true })
    await docker.getVolume(volume).remove()
    await docker.createVolume({ Name: volume })
    const output = await removePlatform(platform.settings)
    t.same(await remaining(platform), [])
    t.notOk(
      (await docker.listVolumes()).Volumes.some(({ Name }) => Name === volume),
      'the volume without labels is removed',
    )
    t.match(output, /images +tenantry\/caddy:.*\n +docker -H unix:\S+ image rm tenantry\/caddy:/)
    const commands = [...output.matchAll(/^ +(rm -r -- '.*')$/gm)].map(([, command]) => command ?? '')
    t.match(commands.join('\n'), /secrets'\n.*regions\.json'\n.*certificates'\n.*prices'\n.*settings'/)
    const paths = commands.map((command) => command.slice("rm -r -- '".length, -1))
    for (const path of paths) await t.resolves(stat(path), `${path} stays`)
    for (const command of commands) await run('sh', ['-c', command])
    for (const path of paths) await t.rejects(stat(path), { code: 'ENOENT' }, `${path} is gone`)
  })
})
