// Docker creates a removed volume again for a container, before the reconciler notices. No empty database may serve the tenant,
// and a restore and the tenant's deletion must succeed.
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import t from 'tap'
import { createOwner, ended, furnish, seen, startBackupPlatform, type Owner } from '#test/backups/support/tenants.ts'
import { testEngine } from '#test/support/docker-platform.ts'
import { until } from '#test/support/until.ts'

const run = promisify(execFile)
const docker = async (...args: string[]) => (await run('docker', ['-H', testEngine(), ...args])).stdout.trim()
const megabyte = 2 ** 20

t.test('A volume that Docker created in place of a lost one', { timeout: 600_000 }, async (t) => {
  const platform = await startBackupPlatform(t, { deleteGraceSeconds: 0 })
  const ada = await createOwner(platform, 'ada')
  await furnish(platform, ada, megabyte)
  const before = await seen(platform, ada)
  const taken = await platform.call('POST', `/v1/tenants/${ada.id}/backups`)
  await ended(platform, taken)

  const containers = async ({ id }: Owner) =>
    (await docker('ps', '-aq', '--filter', `label=tenantry.stack=${id}`)).split('\n').filter((text) => text !== '')
  const labelsOf = (volume: string) => docker('volume', 'inspect', '--format', '{{json .Labels}}', volume)
  const tenant = async ({ id }: Owner) => (await platform.call('GET', `/v1/tenants/${id}`)).body

  /** Removes a volume and creates a container that uses it, so that the engine creates the volume. @returns the container's name */
  const remakeByEngine = async (
    owner: Owner,
    service: 'postgres' | 'runtime',
    volume: 'data' | 'files',
  ): Promise<string> => {
    await platform.stopControlPlanes()
    const name = await docker(
      'ps',
      '-a',
      '--filter',
      `label=tenantry.stack=${owner.id}`,
      '--filter',
      `label=tenantry.service=${service}`,
      '--format',
      '{{.Names}}',
    )
    const [spec] = JSON.parse(await docker('inspect', name)) as [
      {
        Image: string
        Config: { Env: string[]; Labels: Record<string, string>; Cmd: string[] | null }
        HostConfig: { Mounts: { Source: string; Target: string }[] }
      },
    ]
    await docker('rm', '-f', ...(await containers(owner)))
    await docker('volume', 'rm', `tenantry-${owner.id}-${volume}`)
    const { Config: config, HostConfig: host } = spec
    const mounts = host.Mounts.flatMap(({ Source, Target }) => ['-v', `${Source}:${Target}`])
    const labels = Object.entries(config.Labels)
      .filter(([label]) => label.startsWith('tenantry.'))
      .flatMap(([label, value]) => ['--label', `${label}=${value}`])
    const environment = config.Env.flatMap((text) => ['-e', text])
    const limits = [
      '--memory',
      '512m',
      '--restart',
      'unless-stopped',
      '--network',
      'none',
      '--tmpfs',
      '/run/postgresql:size=1m,mode=0700,uid=10002,gid=10002',
    ]
    await docker(
      'create',
      '--name',
      name,
      ...limits,
      ...labels,
      ...environment,
      ...mounts,
      spec.Image,
      ...(config.Cmd ?? []),
    )
    t.equal(await labelsOf(`tenantry-${owner.id}-${volume}`), 'null', 'Docker created the volume without labels')
    return name
  }

  t.test(
    'With an empty data volume the database does not start, the tenant reports it, and a restore succeeds',
    async (t) => {
      const name = await remakeByEngine(ada, 'postgres', 'data')
      await docker('start', name)
      await until(
        async () => Number(await docker('inspect', '--format', '{{.RestartCount}}', name)) > 0,
        'the restart policy starts the container again',
      )
      const { stdout, stderr } = await run('docker', ['-H', testEngine(), 'logs', name])
      t.match(stdout + stderr, new RegExp(`"tenantry-${ada.id}-data" holds no data directory`))
      t.notMatch(stdout + stderr, /ready to accept connections/, 'no server started')

      await platform.startControlPlane()
      await until(async () => (await tenant(ada))['status'] === 'failed', 'the tenant to be failed')
      t.match(await tenant(ada), {
        reason: /volume "data" and its data are gone.*unlabelled volume of that name/,
        conditions: [{ type: 'Services', status: 'False', reason: 'VolumeMissing' }],
      })
      const { body } = await platform.call('GET', `/v1/tenants/${ada.id}/drift`)
      t.match(JSON.stringify(body), /"volume\/data","field":"existence","desired":"present","observed":"unlabelled"/)

      const operation = await ended(
        platform,
        await platform.call('POST', `/v1/backups/${String(taken.body['id'])}/restore`, { into: 'same' }),
        240,
      )
      t.match(operation, { state: 'succeeded', error: null })
      await until(async () => (await tenant(ada))['status'] === 'ready', 'the tenant to be ready')
      t.same(await seen(platform, ada), before, 'all is there')
      t.match(JSON.parse(await labelsOf(`tenantry-${ada.id}-data`)), {
        'tenantry.installation': platform.installation,
        'tenantry.stack': ada.id,
      })
    },
  )

  t.test('With an empty files volume the tenant reports it, and a restore succeeds', async (t) => {
    await remakeByEngine(ada, 'runtime', 'files')
    await platform.startControlPlane()
    await until(async () => (await tenant(ada))['status'] === 'failed', 'the tenant to be failed')
    t.match(await tenant(ada), { reason: /volume "files" and its data are gone.*unlabelled volume of that name/ })
    const operation = await ended(
      platform,
      await platform.call('POST', `/v1/backups/${String(taken.body['id'])}/restore`, { into: 'same' }),
      240,
    )
    t.match(operation, { state: 'succeeded', error: null })
    await until(async () => (await tenant(ada))['status'] === 'ready', 'the tenant to be ready')
    t.same(await seen(platform, ada), before, 'all is there')
  })

  t.test('With an emptied data volume the database does not start, and a restore succeeds', async (t) => {
    const name = await docker(
      'ps',
      '--filter',
      `label=tenantry.stack=${ada.id}`,
      '--filter',
      'label=tenantry.service=postgres',
      '--format',
      '{{.Names}}',
    )
    await docker('exec', name, 'sh', '-c', 'rm -rf /var/lib/postgresql/*')
    await docker('kill', name)
    await docker('start', name)
    await platform.call('POST', `/v1/tenants/${ada.id}/restart`)
    await until(async () => (await tenant(ada))['status'] === 'failed', 'the tenant to be failed')
    t.match(await tenant(ada), { reason: /volume "data" is empty.*No empty database is started/ })
    const operation = await ended(
      platform,
      await platform.call('POST', `/v1/backups/${String(taken.body['id'])}/restore`, { into: 'same' }),
      240,
    )
    t.match(operation, { state: 'succeeded', error: null })
    await until(async () => (await tenant(ada))['status'] === 'ready', 'the tenant to be ready')
    t.same(await seen(platform, ada), before, 'all is there')
  })

  t.test('A deletion removes the volume that Docker created', async (t) => {
    await docker('start', await remakeByEngine(ada, 'postgres', 'data'))
    await platform.startControlPlane()
    t.match(
      (await platform.call('DELETE', `/v1/tenants/${ada.id}?purge=true`, undefined, { prefer: 'wait=60' })).body[
        'operation'
      ],
      { state: 'succeeded' },
    )
    t.equal(await docker('volume', 'ls', '-q', '--filter', `name=${ada.id}`), '', 'no volume remains')
    t.same(await containers(ada), [], 'no container remains')
  })
})
