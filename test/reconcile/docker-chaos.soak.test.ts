// Operators change many dedicated tenants while the control plane and the Docker Engine are killed at random moments. Afterwards
// each tenant is in its desired state or failed with a reason, nothing has leaked, and no foreign object has changed.
import { execFile } from 'node:child_process'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import t from 'tap'
import { ensureEngine } from '#scripts/engine.ts'
import { chanceOf } from '#test/simulation/chance.ts'
import { startDockerPlatform, type DockerPlatform } from '#test/support/docker-platform.ts'
import { effort, seed } from '#test/support/effort.ts'

const run = promisify(execFile)

const tenantCount = effort({ small: 3, full: 20 })
const planeKills = effort({ small: 4, full: 100 })
const engineKills = effort({ small: 1, full: 30 })
const foreignCount = effort({ small: 3, full: 20 })

/** Creates foreign objects, some with names like ours. */
async function plantForeign(
  docker: (...args: string[]) => Promise<string>,
): Promise<{ poll(): Promise<string>; remove(): Promise<void> }> {
  const names = Array.from({ length: foreignCount }, (_, n) =>
    n % 2 === 0 ? `foreign-${n}` : `tenantry-t_${String(n).padStart(20, '0')}-data`,
  )
  for (const [n, name] of names.entries()) {
    await docker('volume', 'create', name)
    await docker('network', 'create', '--internal', '--subnet', `10.62.${n}.0/28`, name)
    await docker(
      'create',
      '--name',
      name,
      '--network',
      name,
      '-v',
      `${name}:/data`,
      'debian:trixie-slim',
      'sleep',
      '1000',
    )
  }
  return {
    async poll() {
      const parts = [
        await docker('inspect', '--format', '{{.Id}} {{.Name}} {{json .Config}} {{.State.Status}}', ...names),
        // The engine itself adds a gateway when it restarts.
        await docker(
          'network',
          'inspect',
          '--format',
          '{{.Id}} {{.Name}} {{range .IPAM.Config}}{{.Subnet}}{{end}} {{json .Labels}}',
          ...names,
        ),
        await docker('volume', 'inspect', '--format', '{{.Name}} {{.CreatedAt}} {{json .Labels}}', ...names),
      ]
      return parts.join('\n')
    },
    async remove() {
      await docker('rm', '-f', ...names)
      await docker('network', 'rm', ...names)
      await docker('volume', 'rm', ...names)
    },
  }
}

/** Sends one random request of an operator. It may be lost when the control plane dies. */
async function request(platform: DockerPlatform, random: () => number, count: () => number): Promise<unknown> {
  const rows = await platform.sql("select id from tenants where desired <> 'deleted' order by id")
  const id = String(rows[Math.floor(random() * rows.length)]?.['id'])
  const choice = Math.floor(random() * 8)
  if (rows.length < tenantCount || choice === 0)
    return platform.call('POST', '/v1/tenants', { name: `chaos-${count()}`, plan: 'Pro', region: 'local' })
  if (choice === 1) return platform.call('DELETE', `/v1/tenants/${id}?purge=true`)
  if (choice === 2) return platform.call('POST', `/v1/tenants/${id}/restart`)
  if (choice === 3) return platform.call('POST', `/v1/tenants/${id}/pause`)
  if (choice === 4) return platform.call('POST', `/v1/tenants/${id}/wake`)
  const megabytes = 256 + Math.floor(random() * 4) * 64
  const body =
    choice === 5
      ? { suspended: true }
      : choice === 6
        ? { suspended: false }
        : { resources: { postgres: { memory_bytes: megabytes * 2 ** 20 } } }
  return platform.call('PATCH', `/v1/tenants/${id}`, body)
}

t.test(
  `${planeKills} kills of the control plane and ${engineKills} of the engine over ${tenantCount} tenants`,
  { timeout: 3 * 3_600_000 },
  async (t) => {
    t.comment(`seed ${seed}`)
    const random = chanceOf(seed).next
    const engine = await ensureEngine()
    const docker = async (...args: string[]) =>
      (await run('docker', ['-H', engine.host, ...args], { maxBuffer: 2 ** 26 })).stdout.trim()
    const foreign = await plantForeign(docker)
    t.teardown(() => foreign.remove())
    const before = await foreign.poll()
    const platform = await startDockerPlatform({ deleteGraceSeconds: 0, orphanGraceSeconds: 5 })
    t.teardown(() => platform.stop())
    await platform.stopControlPlanes()

    let made = 0
    let requesting = true
    const operators = (async () => {
      while (requesting) {
        await request(platform, random, () => ++made).catch(() => undefined)
        await sleep(100 + random() * 900)
      }
    })()
    const kills = [...Array<'plane'>(planeKills).fill('plane'), ...Array<'engine'>(engineKills).fill('engine')]
      .map((what) => ({ what, at: random() }))
      .sort((a, b) => a.at - b.at)
    let plane = await platform.startControlPlane()
    for (const { what } of kills) {
      await sleep(500 + random() * 4_000)
      if (what === 'plane') {
        await plane.kill('SIGKILL')
        plane = await platform.startControlPlane()
      } else {
        await engine.kill()
        await sleep(random() * 1_000)
        await engine.restart()
      }
    }
    requesting = false
    await operators

    const deadline = Date.now() + 60_000
    const restless = async () =>
      platform.sql(
        `select id, desired, status, reason, generation, observed_generation from tenants
     where not (status = 'failed' and reason is not null) and (generation <> observed_generation
       or status <> case desired when 'active' then 'ready' when 'deleted' then 'gone' else desired end)`,
      )
    while ((await restless()).length > 0 && Date.now() < deadline) await sleep(250)
    t.same(await restless(), [], 'within 60 s each tenant is in its desired state or failed with a reason')
    t.same(
      await platform.sql("select id, kind, error from operations where state in ('pending', 'running')"),
      [],
      'no operation is open',
    )

    const ids = async (sql: string) => (await platform.sql(sql)).map(({ id }) => String(id)).sort()
    const tenants = await ids("select id from tenants where isolation <> 'schema-per-tenant'")
    const { containers, networks, volumes } = await platform.host.observe(
      { installation: platform.installation },
      AbortSignal.timeout(60_000),
    )
    const stacks = (objects: readonly { labels: { stack: string } }[]) =>
      objects
        .map(({ labels }) => labels.stack)
        .filter((stack) => stack.startsWith('t_'))
        .sort()
    const running = await ids("select id from tenants where isolation <> 'schema-per-tenant' and status = 'ready'")
    const ofRunning = new Set(running)
    t.same(
      stacks(containers).filter((id) => ofRunning.has(id)),
      running.flatMap((id) => [id, id]),
      'each running tenant has two containers',
    )
    // An outdated container of a stopped tenant is removed, and created again when the tenant runs.
    const services = containers
      .filter(({ labels }) => labels.stack.startsWith('t_') && !ofRunning.has(labels.stack))
      .map(({ labels }) => `${labels.stack} ${labels.service ?? ''}`)
    t.same(
      services.filter((one, index) => services.indexOf(one) !== index || !tenants.includes(one.split(' ')[0] ?? '')),
      [],
      'each stopped tenant has at most one container of each service',
    )
    t.same(stacks(networks), tenants, 'each tenant has a network')
    const [secrets, stored] = [
      volumes.filter(({ labels }) => labels.service !== undefined),
      volumes.filter(({ labels }) => labels.service === undefined),
    ]
    t.same(
      stacks(stored),
      tenants.flatMap((id) => [id, id]),
      'each tenant has a data and a files volume',
    )
    t.same(
      stacks(secrets).filter((id) => ofRunning.has(id)),
      running,
      'each running tenant has the secrets of one runtime',
    )
    const stopped = stacks(secrets).filter((id) => !ofRunning.has(id))
    t.same(
      stopped.filter((id, index) => stopped.indexOf(id) !== index || !tenants.includes(id)),
      [],
      'each stopped tenant has the secrets of at most one runtime',
    )
    t.same(await ids('select stack_id as id from subnets'), tenants, 'each tenant has a subnet')
    t.same(await ids('select distinct tenant_id as id from tenant_secrets'), tenants, 'each tenant has secrets')
    for (const { id, name } of await platform.sql("select id, name from tenants where status = 'ready'")) {
      // A keep-alive connection to a replaced gateway fails once.
      const response = await platform
        .tenantCall(String(name), 'GET', '/health')
        .catch(() => platform.tenantCall(String(name), 'GET', '/health'))
      t.equal(response.status, 200, `${String(id)} responds`)
      await response.body?.cancel()
    }
    t.equal(await foreign.poll(), before, 'foreign objects are unchanged')
    t.comment(
      `kills: ${planeKills} of the control plane, ${engineKills} of the engine; ` +
        `tenants created: ${made}, remaining: ${tenants.length}; seed ${seed}`,
    )
  },
)
