// Dedicated tenants on a Docker Engine: every container follows the hardening template, and a tenant's containers reach only
// their own services and the gateway.
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import pg from 'pg'
import t from 'tap'
import { compileSource } from '#examples/functions/compile.ts'
import { readAll } from '#test/functions/support/assemblyscript.ts'
import { startDockerPlatform, testEngine } from '#test/support/docker-platform.ts'
import { query } from '#test/support/postgres.ts'

const run = promisify(execFile)
const docker = async (...args: string[]) =>
  (await run('docker', ['-H', testEngine(), ...args], { maxBuffer: 2 ** 26 })).stdout.trim()

interface Inspected {
  Name: string
  Config: { User: string; Env: string[]; Labels: Record<string, string>; Healthcheck?: { Test: string[] } }
  HostConfig: Record<string, unknown> & {
    Binds: string[] | null
    Mounts?: { Type: string; Source: string }[]
    RestartPolicy: { Name: string }
  }
  Mounts: { Type: string; Source: string; Destination: string; RW: boolean }[]
  NetworkSettings: { Networks: Record<string, { IPAddress: string }> }
}

t.test('Two dedicated tenants and a shared tenant are isolated', { timeout: 300_000 }, async (t) => {
  const platform = await startDockerPlatform()
  t.teardown(() => platform.stop())
  const create = async (name: string, plan: string) => {
    const { status, body } = await platform.call(
      'POST',
      '/v1/tenants',
      { name, plan, region: 'local' },
      { prefer: 'wait=60' },
    )
    t.same([status, body['status']], [201, 'ready'], `${name}: ${String(body['reason'])}`)
    return {
      id: String(body['tenant_id']),
      url: String(body['database_url']),
      keys: body['keys'] as Record<string, string>,
    }
  }
  const [ada, ben] = [await create('ada', 'Pro'), await create('ben', 'Pro')]
  const shared = await create('shared', 'Free')
  const names = (
    await docker(
      'ps',
      '-a',
      '--filter',
      `label=tenantry.installation=${platform.installation}`,
      '--format',
      '{{.Names}}',
    )
  ).split('\n')
  const inspected = JSON.parse(await docker('inspect', ...names)) as Inspected[]
  const of = (tenant: { id: string }, service: string) => {
    const found = inspected.find(
      ({ Config }) => Config.Labels['tenantry.stack'] === tenant.id && Config.Labels['tenantry.service'] === service,
    )
    if (found === undefined) throw new Error(`no ${service} of ${tenant.id}`)
    return found
  }

  t.test('Every container follows the hardening template', async (t) => {
    t.equal(inspected.length, 2 * 2 + 3, 'two stacks, and the region: Postgres, runtime, gateway')
    for (const { Name, Config, HostConfig, Mounts } of inspected) {
      t.match(
        HostConfig,
        {
          CapDrop: ['ALL'],
          Privileged: false,
          ReadonlyRootfs: true,
          RestartPolicy: { Name: 'unless-stopped' },
          PidMode: '',
          UTSMode: '',
          UsernsMode: '',
          OomKillDisable: false,
        },
        Name,
      )
      t.same(HostConfig['CapAdd'] ?? [], [], `${Name} has no capability added`)
      t.ok(
        (HostConfig['SecurityOpt'] as string[]).some((option) => option.startsWith('no-new-privileges')),
        `${Name}: no new privileges`,
      )
      t.notOk(
        (HostConfig['SecurityOpt'] as string[]).some((option) => option.includes('unconfined')),
        `${Name}: seccomp is on`,
      )
      t.same(HostConfig['Devices'] ?? [], [], `${Name} has no device`)
      t.match(String(HostConfig['IpcMode']), /^private$/, Name)
      t.ok(
        Number(HostConfig['Memory']) > 0 && HostConfig['Memory'] === HostConfig['MemorySwap'],
        `${Name}: memory is limited, swap too`,
      )
      t.ok(
        Number(HostConfig['PidsLimit']) > 0 && Number(HostConfig['NanoCpus']) > 0,
        `${Name}: processes and CPU are limited`,
      )
      t.match(Config.User, /^1000[12]:1000[12]$/, `${Name} does not run as root`)
      t.ok((Config.Healthcheck?.Test.length ?? 0) > 1, `${Name} has a health check`)
      t.same(HostConfig.Binds ?? [], [], `${Name} mounts no path of the host`)
      for (const mount of Mounts)
        t.ok(mount.Type === 'volume' || mount.Type === 'tmpfs', `${Name}: ${mount.Destination} is a volume of its own`)
      t.ok(
        Mounts.filter(({ Destination }) => Destination === '/run/secrets').every(({ RW }) => !RW),
        `${Name}: secrets can't be written`,
      )
    }
  })

  t.test('docker inspect shows no secret', async (t) => {
    const text = JSON.stringify(inspected)
    const [token] = await platform.secretTexts()
    t.ok(token !== undefined && token.length >= 32)
    for (const secret of [...(await platform.secretTexts()), ...Object.values(ada.keys), new URL(ada.url).password])
      t.notOk(text.includes(secret), 'the output contains no secret')
    t.notMatch(text, /PASSWORD=/i)
    for (const { Name, Config } of inspected)
      t.notOk(
        Config.Env.some((entry) => /(SECRET|TOKEN|KEY)=/.test(entry)),
        `${Name}: the environment names files only`,
      )
  })

  t.test("A tenant's containers reach only their own network and the gateway", async (t) => {
    /** Reports whether a container can connect over TCP. Every image contains `bash`. */
    const reaches = async (container: string, host: string, port: number) => {
      const { stdout } = await run('docker', [
        '-H',
        testEngine(),
        'exec',
        container,
        'timeout',
        '2',
        'bash',
        '-c',
        `exec 3<>/dev/tcp/${host}/${port} && echo reached`,
      ]).catch(() => ({ stdout: '' }))
      return stdout.includes('reached')
    }
    const address = ({ NetworkSettings }: Inspected) => Object.values(NetworkSettings.Networks)[0]?.IPAddress ?? ''
    const region = (service: string) => of({ id: `region-local-${platform.installation.slice(0, 8)}` }, service)
    const hostAddress = `${address(region('postgres')).split('.').slice(0, 3).join('.')}.1`
    t.ok(
      await reaches(region('runtime-0').Name.slice(1), hostAddress, Number(new URL(platform.controlUrl).port)),
      "the region's runtime reaches the control plane",
    )
    for (const service of ['runtime', 'postgres']) {
      const inside = of(ada, service).Name.slice(1)
      t.ok(await reaches(inside, `${ada.id}-postgres`, 5432), `${service}: its own Postgres`)
      t.ok(await reaches(inside, 'gateway', 4402), `${service}: the gateway`)
      t.notOk(await reaches(inside, address(of(ben, 'postgres')), 5432), `${service}: not another tenant's Postgres`)
      t.notOk(await reaches(inside, address(of(ben, 'runtime')), 24401), `${service}: not another tenant's runtime`)
      t.notOk(await reaches(inside, `${ben.id}-postgres`, 5432), `${service}: not by name either`)
      t.notOk(await reaches(inside, address(region('postgres')), 5432), `${service}: not the region's Postgres`)
      t.notOk(
        await reaches(inside, hostAddress, Number(new URL(platform.controlUrl).port)),
        `${service}: not the control plane`,
      )
      t.notOk(await reaches(inside, hostAddress, platform.postgres.port), `${service}: not the control database`)
      t.notOk(await reaches(inside, '127.0.0.1', platform.postgres.port), `${service}: not by the loopback address`)
      t.notOk(await reaches(inside, '169.254.169.254', 80), `${service}: no cloud metadata`)
      t.notOk(await reaches(inside, '1.1.1.1', 53), `${service}: not the internet`)
      t.equal(
        await docker('exec', inside, 'bash', '-c', 'ls /var/run/docker.sock /run/docker.sock 2>/dev/null | wc -l'),
        '0',
        `${service}: no Docker socket`,
      )
      await t.rejects(
        docker('exec', inside, 'bash', '-c', 'echo x > /etc/probe'),
        `${service}: its root file system is read-only`,
      )
    }
  })

  t.test("The token of a tenant's runtime gives access to that tenant only", async (t) => {
    const inside = of(ada, 'runtime').Name.slice(1)
    const token = await docker('exec', inside, 'cat', '/run/secrets/internal-token')
    t.match(token, new RegExp(`^${ada.id}\\.`))
    const gatewayStatus = async (path: string) => {
      const request = `GET ${path} HTTP/1.0\\r\\nx-tenantry-internal: ${token}\\r\\n\\r\\n`
      return docker(
        'exec',
        inside,
        'timeout',
        '3',
        'bash',
        '-c',
        `exec 3<>/dev/tcp/gateway/4402; printf '${request}' >&3; head -n 1 <&3`,
      )
    }
    for (const path of [
      `/internal/v1/routes/${ada.id}`,
      `/internal/v1/tenants/${ben.id}/health`,
      '/internal/v1/activity',
      '/internal/v1/watch/routes',
    ]) {
      t.notMatch(await gatewayStatus(path), / 200 /, path)
    }
    const watch = await docker(
      'exec',
      inside,
      'timeout',
      '2',
      'bash',
      '-c',
      `exec 3<>/dev/tcp/gateway/4402; ` +
        `printf 'GET /internal/v1/watch/manifests HTTP/1.0\\r\\nx-tenantry-internal: ${token}\\r\\n\\r\\n' >&3; cat <&3`,
    ).catch((error: unknown) => (error as { stdout?: string }).stdout ?? '')
    t.ok(
      watch.includes(ada.id) && !watch.includes(ben.id) && !watch.includes(shared.id),
      'the watch sends its own tenant only',
    )
    const direct = await fetch(`${platform.controlUrl}/internal/v1/watch/routes`, {
      headers: { 'x-tenantry-internal': token },
    })
    t.equal(direct.status, 404)
  })

  t.test('A function runs in the hardened runtime', async (t) => {
    const form = new FormData()
    form.set('name', 'greet')
    form.set(
      'wasm',
      new File([await compileSource(`${readAll}\nprocess.stdout.write('Hello ' + readAll())`)], 'greet.wasm'),
    )
    const key = ada.keys['secret_key'] ?? ''
    const deployed = await fetch(`${platform.gatewayUrl}/t/ada/functions/v1/deploy`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}` },
      body: form,
    })
    t.equal(deployed.status, 201, await deployed.text())
    const invoked = await platform.tenantCall('ada', 'POST', '/functions/v1/invoke/greet', {
      key,
      body: 'world',
      type: 'text/plain',
    })
    t.same([invoked.status, await invoked.text()], [200, 'Hello world'])
  })

  t.test("The gateway's Postgres proxy connects each tenant to its own database", async (t) => {
    t.same(await query(ada.url, 'select current_database() as database, current_schema() as schema'), [
      { database: 'home', schema: ada.id },
    ])
    t.same(
      await query(ada.url, "select rolname from pg_roles where rolname ~ '^t_' and rolname !~ $1", [`^${ada.id}`]),
      [],
      'the database has no roles of other tenants',
    )
    t.match(
      await query(shared.url, 'select current_schema() as schema'),
      [{ schema: shared.id }],
      'the shared tenant is connected to the shared Postgres',
    )
    const asBen = new URL(ada.url)
    asBen.username = `${ben.id}_admin`
    await t.rejects(query(asBen.href, 'select 1'), "Ada's password opens nothing of Ben's")
    const asSuperuser = new URL(ada.url)
    asSuperuser.username = 'postgres'
    await t.rejects(query(asSuperuser.href, 'select 1'))
  })

  t.test("SQL clients verify the certificate of the region's gateway", async (t) => {
    const response = await fetch(`${platform.controlUrl}/v1/certificate-authority.pem`)
    const ca = await response.text()
    for (const { url, id } of [ada, shared]) {
      const client = new pg.Client({ connectionString: url, ssl: { ca, host: new URL(url).hostname } })
      await client.connect()
      t.match((await client.query('select current_schema() as schema')).rows, [{ schema: id }])
      await client.end()
    }
  })

  t.test("The password of a dedicated tenant's database_url is rotated, also while the tenant is paused", async (t) => {
    const post = (action: string) =>
      platform.call('POST', `/v1/tenants/${ada.id}/${action}`, undefined, { prefer: 'wait=60' })
    let old = ada.url
    for (const isPaused of [false, true]) {
      if (isPaused) t.equal((await post('pause')).body['status'], 'paused')
      const { body } = await post('database-password/rotate')
      t.match(body, { operation: { kind: 'rotate_database_password', state: 'succeeded' } })
      const url = String(body['database_url'])
      if (isPaused) t.equal((await post('wake')).body['status'], 'ready')
      t.same(await query(url, 'select current_schema() as schema'), [{ schema: ada.id }])
      await t.rejects(query(old, 'select 1'), { code: '28P01' }, 'the old password is dead')
      old = url
    }
  })

  t.test("The passwords of a dedicated tenant's services are rotated, also while the tenant is paused", async (t) => {
    const post = (action: string) =>
      platform.call('POST', `/v1/tenants/${ada.id}/${action}`, undefined, { prefer: 'wait=60' })
    const verifiers = async () => {
      const ofStack = `label=tenantry.stack=${ada.id}`
      const name = await docker('ps', '--filter', ofStack, '--filter', 'label=tenantry.service=postgres', '-q')
      const sql = `select rolpassword from pg_authid where rolname in ('${ada.id}', '${ada.id}_ddl') order by rolname`
      return (await docker('exec', name, 'psql', '-U', 'postgres', '-Atc', sql)).split('\n')
    }
    const request = async (method: string, path: string) => {
      const response = await platform.tenantCall('ada', method, path, { key: ada.keys['secret_key'] ?? '' })
      t.equal(response.status, 200, await response.text())
    }
    for (const isPaused of [false, true]) {
      const before = await verifiers()
      if (isPaused) t.equal((await post('pause')).body['status'], 'paused')
      t.match((await post('service-passwords/rotate')).body, {
        operation: { kind: 'rotate_service_passwords', state: 'succeeded' },
      })
      if (isPaused) t.equal((await post('wake')).body['status'], 'ready')
      const after = await verifiers()
      t.equal(after.length, 2)
      t.notOk(
        after.some((line) => before.includes(line)),
        'both logins have another password',
      )
      await request('GET', '/storage/v1/bucket')
      await request('POST', '/admin/reload-schemas')
    }
  })
})
