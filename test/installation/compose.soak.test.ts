// The platform of docker-compose.yml: set up, started, used over TLS by a paying tenant, checked from outside and from inside,
// and removed completely.
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { connect as connectTls } from 'node:tls'
import { promisify } from 'node:util'
import type Dockerode from 'dockerode'
import t from 'tap'
import { afterSslRequest } from '#test/gateway/support/sql-wire.ts'
import {
  overTls,
  remaining,
  removePlatform,
  startComposePlatform,
  type ComposePlatform,
} from '#test/support/compose-platform.ts'
import { engineAddress, engineSocket, until } from '#test/support/docker.ts'

const run = promisify(execFile)
const project = new URL('../../', import.meta.url).pathname

async function runDemo(
  { controlUrl, keyFile, certificateFile, region }: ComposePlatform,
  ...more: string[]
): Promise<{ code: number; output: string }> {
  const args = [
    'examples/demo.ts',
    '--control-url',
    controlUrl,
    '--key-file',
    keyFile,
    '--plan',
    'Pro',
    '--region',
    region,
    ...more,
  ]
  const demo = spawn(process.execPath, args, {
    cwd: project,
    env: { ...process.env, NODE_EXTRA_CA_CERTS: certificateFile },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let output = ''
  for (const stream of [demo.stdout, demo.stderr])
    stream.setEncoding('utf8').on('data', (text: string) => (output += text))
  const [code] = (await once(demo, 'close')) as [number | null]
  return { code: code ?? 1, output }
}

t.test(
  'The compose platform serves a paying tenant over TLS, isolates its containers, and is removed completely',
  { timeout: 600_000 },
  async (t) => {
    const platform = await startComposePlatform(t)
    const { docker, name, installation, controlUrl, key, secrets, inside, httpUrl } = platform
    const demo = await runDemo(platform, '--keep')
    t.match(demo.output, /the demo passed/)
    t.equal(demo.code, 0)
    const { tenants } = (await (
      await fetch(`${controlUrl}/v1/tenants`, { headers: { authorization: `Bearer ${key}` } })
    ).json()) as { tenants: { tenant_id: string; name: string; isolation: string }[] }
    t.match(tenants, [{ isolation: 'database-per-tenant' }])
    const [tenant] = tenants
    if (tenant === undefined) throw new Error('The demo left no tenant.')

    await t.test('Caddy gets certificates only for hosts of this installation', async (t) => {
      t.equal(await overTls(platform, 'localhost', '/health'), 200)
      t.equal(await overTls(platform, `${tenant.name}.localhost`, '/health'), 200)
      for (const host of [
        'no-such-tenant.localhost',
        'example.org',
        `x.${tenant.name}.localhost`,
        `${tenant.name}.example.org`,
      ]) {
        t.type(await overTls(platform, host, '/health'), 'string', host)
      }
      const redirect = await fetch(`${httpUrl}/some/path?query=1`, { redirect: 'manual' })
      t.match(
        [redirect.status, redirect.headers.get('location')],
        [308, `https://127.0.0.1:${platform.httpsPort}/some/path?query=1`],
      )
      t.equal(
        await overTls(platform, 'localhost', '/internal/v1/tls/ask?domain=localhost'),
        404,
        'clients outside cannot call the route for certificates',
      )
      t.equal((await fetch(`${controlUrl}/internal/v1/tls/ask?domain=${tenant.name}.LOCALHOST`)).status, 200)
      for (const domain of [
        '',
        '.',
        'x',
        `${tenant.name}.localhost.`,
        `.${tenant.name}.localhost`,
        `%25.localhost`,
        'a'.repeat(300),
      ]) {
        t.ok([400, 404].includes((await fetch(`${controlUrl}/internal/v1/tls/ask?domain=${domain}`)).status), domain)
      }
    })

    await t.test('SQL clients verify the certificate of the gateway', async () => {
      const ca = await (await fetch(`${controlUrl}/v1/certificate-authority.pem`)).text()
      const socket = await afterSslRequest(platform.postgresPort)
      const secure = connectTls({ socket, ca, servername: 'localhost' })
      await once(secure, 'secureConnect')
      secure.destroy()
    })

    await t.test('Every container is hardened', async (t) => {
      const label = async (text: string) => docker.listContainers({ all: true, filters: { label: [text] } })
      const own = await label(`com.docker.compose.project=${name}`)
      const made = await label(`tenantry.installation=${installation}`)
      t.same(own.map(({ Labels }) => Labels['com.docker.compose.service']).sort(), [
        'caddy',
        'control-plane',
        'database',
        'docker-proxy',
        'gateway',
        'watchdog',
      ])
      t.ok(made.length >= 4, "the region's Postgres and runtime, the tenant's Postgres and runtime")
      for (const { Id } of [...own, ...made]) {
        const { Config, HostConfig, Mounts, Name, NetworkSettings } = await docker.getContainer(Id).inspect()
        const service = Config.Labels['com.docker.compose.service'] ?? ''
        t.match(
          HostConfig,
          {
            ReadonlyRootfs: true,
            Privileged: false,
            CapDrop: ['ALL'],
            RestartPolicy: { Name: service === '' ? 'unless-stopped' : 'always' },
          },
          Name,
        )
        t.match((HostConfig.SecurityOpt as string[]).join(), /no-new-privileges/, Name)
        t.match(HostConfig.Sysctls, { 'net.ipv4.ip_forward': '0', 'net.ipv4.tcp_orphan_retries': '4' }, Name)
        t.match(Config.User, /^[1-9]\d*:[1-9]\d*$/, Name)
        t.ok(
          (HostConfig.Memory ?? 0) > 0 && (HostConfig.NanoCpus ?? 0) > 0 && (HostConfig.PidsLimit ?? 0) > 0,
          `${Name} has limits`,
        )
        for (const nothing of [HostConfig.CapAdd, HostConfig.Devices] as unknown[])
          t.ok(nothing === null || (Array.isArray(nothing) && nothing.length === 0), Name)
        t.match([HostConfig.PidMode, HostConfig.UTSMode, HostConfig.UsernsMode], ['', '', ''], Name)
        const hasSocket = service === 'docker-proxy' || service === 'watchdog'
        t.equal(
          Mounts.some(({ Source }) => Source === engineSocket()),
          hasSocket,
          `${Name} ${hasSocket ? 'has' : 'lacks'} the engine's socket`,
        )
        if (hasSocket) t.same(Object.keys(NetworkSettings.Networks), ['none'])
        const inspected = JSON.stringify(await docker.getContainer(Id).inspect())
        t.notOk(
          secrets.some((secret) => inspected.includes(secret)),
          `${Name} shows no secret`,
        )
      }
    })

    await t.test('Containers reach only the services that they need', async (t) => {
      const reach = (service: string, host: string, port: number) =>
        inside(service, ['timeout', '3', 'bash', '-c', `exec 3<> /dev/tcp/${host}/${port}`]).then(
          ({ code }) => code === 0,
        )
      t.equal(await reach('control-plane', 'database', 5432), true)
      for (const service of ['gateway', 'caddy', 'docker-proxy'])
        t.equal(await reach(service, 'database', 5432), false, `${service} cannot reach the control database`)
      t.equal(await reach('caddy', 'gateway', 4401), true)
      t.equal(await reach('gateway', 'control-plane', 4400), true)
      t.equal(await reach('docker-proxy', 'control-plane', 4400), false)
      const runtimes = await docker.listContainers({
        filters: { label: [`tenantry.stack=${tenant.tenant_id}`, 'tenantry.service=runtime'] },
      })
      const runtime = runtimes[0]?.Id ?? ''
      const fromTenant = (host: string, port: number) =>
        run('docker', ['exec', runtime, 'timeout', '3', 'bash', '-c', `exec 3<> /dev/tcp/${host}/${port}`], {
          env: { ...process.env, DOCKER_HOST: engineAddress() },
        }).then(
          () => true,
          () => false,
        )
      t.equal(await fromTenant('gateway', 4402), true, 'its gateway')
      const database = await docker
        .getContainer(
          own(await docker.listContainers({ filters: { label: [`com.docker.compose.project=${name}`] } }), 'database'),
        )
        .inspect()
      for (const [host, port] of [
        ['control-plane', 4400],
        ['database', 5432],
        [Object.values(database.NetworkSettings.Networks)[0]?.IPAddress ?? '', 5432],
        ['169.254.169.254', 80],
        ['1.1.1.1', 53],
      ] as const)
        t.equal(await fromTenant(host, port), false, `${host}:${port}`)
    })

    await t.test('The Docker proxy rejects all requests of the control plane outside its installation', async (t) => {
      const script = `
      const { request } = require('node:http')
      const send = (method, path, body) => new Promise((resolve) => {
        const headers = { 'content-type': 'application/json' }
        const call = request({ socketPath: '/run/docker-proxy/docker-proxy.sock', method, path, headers }, (response) =>
          resolve(response.resume().statusCode))
        call.end(body === undefined ? undefined : JSON.stringify(body))
      })
      const escape = { Image: 'tenantry/control-plane', Cmd: ['sh'], HostConfig: { Privileged: true, Binds: ['/:/host'] } }
      const command = { AttachStdin: false, AttachStdout: true, AttachStderr: true, Tty: false, Cmd: ['id'] }
      ;(async () => console.log(JSON.stringify([
        await send('GET', '/version'), await send('POST', '/v1.41/containers/create?name=tenantry-x', escape),
        await send('POST', '/v1.41/containers/${name}-gateway/exec', command),
        await send('DELETE', '/v1.41/containers/${name}-gateway?force=true'),
        await send('POST', '/v1.41/images/create?fromImage=x'), await send('DELETE', '/v1.41/volumes/${name}_database'),
      ])))()`
      const { output } = await inside('control-plane', ['node', '--eval', script])
      t.same(JSON.parse(output), [200, 403, 403, 403, 403, 403])
    })

    await t.test('A backup succeeds and is verified through the Docker proxy', async (t) => {
      const post = async (path: string) => {
        const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json', prefer: 'wait=60' }
        const response = await fetch(`${controlUrl}${path}`, { method: 'POST', headers, body: '{}' })
        return (await response.json()) as { id: string; operation: { state: string; error: string | null } }
      }
      const backup = await post(`/v1/tenants/${tenant.tenant_id}/backups`)
      t.match(backup.operation, { state: 'succeeded', error: null })
      t.match((await post(`/v1/backups/${backup.id}/verify`)).operation, { state: 'succeeded', error: null })
      const { output } = await inside('control-plane', ['ls', `/var/backups/tenantry/${installation}`])
      t.equal(output.trim(), backup.id)
    })

    await t.test('A restarted gateway serves its tenants again', async (t) => {
      const gateway = docker.getContainer(`${name}-gateway`)
      await gateway.restart()
      t.ok(
        await until(async () =>
          (await overTls(platform, `${tenant.name}.localhost`, '/health')) === 200 ? true : undefined,
        ),
      )
    })

    await t.test('deploy/remove leaves nothing on the engine', async (t) => {
      t.ok((await remaining(platform)).length > 10)
      await removePlatform(platform.settings)
      t.same(await remaining(platform), [])
    })
  },
)

function own(containers: Dockerode.ContainerInfo[], service: string): string {
  return containers.find(({ Labels }) => Labels['com.docker.compose.service'] === service)?.Id ?? ''
}
