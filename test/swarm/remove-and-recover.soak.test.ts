// A platform on three hosts with tenants of all isolation models is removed by deploy/remove, which leaves the objects of others, and is
// rebuilt from its backup target and its master key as docs/operate/back-up-and-restore.md describes: rows, files, usage, invoices and
// keys are compared.
import { execFile } from 'node:child_process'
import { copyFile, mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import t, { type Test } from 'tap'
import { dumpTime } from '#control-plane/backups/control-database/dump-id.ts'
import { until } from '#test/support/docker.ts'
import type { LabHost } from '#test/support/swarm-lab.ts'
import { month, prices } from '../installation/support/billed-month.ts'
import { backUp, createOwner, seen, suspend, type Owner } from './owners.ts'
import { connectStack, openStack, type Stack, type StackPlatform } from './stack.ts'

const run = promisify(execFile)
const project = new URL('../../', import.meta.url).pathname
const targetPrefix = 'backups/'
const foreignVolumes = ['foreign-data', `tenantry-t_${'0'.repeat(20)}-data`]
const ownNetworks = ['bridge', 'docker_gwbridge', 'host', 'ingress', 'none']
const everywhere = 'container and network of others'

/** Writes the settings of the operator: the prices, and a backup target on the S3 server, into which the control database is dumped. */
async function writeSettings({ files, s3, s3Endpoint }: Stack): Promise<void> {
  for (const name of ['prices', 'targets']) await mkdir(join(files, name), { recursive: true, mode: 0o700 })
  const { bucket, region, accessKeyId, secretAccessKey } = s3.settings
  const target = {
    endpoint: s3Endpoint,
    bucket,
    region,
    prefix: targetPrefix,
    path_style: true,
    access_key_id: accessKeyId,
    secret_access_key_file: '/etc/tenantry/targets/secret-key',
  }
  const settings = [
    'TENANTRY_BACKUP_TARGETS_FILE=/etc/tenantry/targets/targets.json',
    'TENANTRY_PRICES_FILE=/etc/tenantry/prices/prices.json',
    'TENANTRY_DUMP_MINUTES=1',
  ]
  await writeFile(join(files, 'targets/targets.json'), JSON.stringify([{ name: 'offsite', s3: target }]))
  await writeFile(join(files, 'targets/secret-key'), secretAccessKey)
  await writeFile(join(files, 'prices/prices.json'), JSON.stringify(prices))
  await writeFile(join(files, 'control-plane.env'), `${settings.join('\n')}\n`)
}

/** Starts a container on each host that belongs to others, with a volume and on a network of the swarm, and further volumes. */
async function addForeign({ lab }: Stack): Promise<void> {
  await lab.hosts[0].docker('network', 'create', '--driver', 'overlay', '--attachable', 'foreign-net')
  const options = ['--detach', '--name', 'foreign', '--network', 'foreign-net', '--volume', 'foreign-data:/data']
  const program = ['--entrypoint', 'sleep', 'tenantry/control-plane:latest', 'infinity']
  for (const host of lab.hosts) {
    for (const volume of foreignVolumes) await host.docker('volume', 'create', volume)
    // A host receives a network of the swarm a moment after another one has created it.
    let failure: unknown
    const start = () =>
      host.docker('run', ...options, ...program).catch(async (error: unknown) => {
        failure = error
        await host.docker('rm', '--force', 'foreign').catch(() => undefined)
        return undefined
      })
    await until(start, 60).catch(() => {
      throw new Error(`No foreign container starts on ${host.id}.`, { cause: failure })
    })
  }
}

/** Returns the names of all objects of a host. */
async function objectsOf(host: LabHost) {
  const names = async (...command: string[]) =>
    (await host.docker(...command))
      .split('\n')
      .filter((name) => name !== '')
      .sort()
  const networks = await names('network', 'ls', '--format', '{{.Name}}')
  return {
    containers: await names('ps', '--all', '--format', '{{.Names}}'),
    volumes: await names('volume', 'ls', '--format', '{{.Name}}'),
    networks: networks.filter((name) => !ownNetworks.includes(name)),
  }
}

/** Runs SQL in the primary of the control database. */
async function controlSql({ lab }: Pick<Stack, 'lab'>, sql: string): Promise<void> {
  const failures: string[] = []
  for (const [at, host] of lab.hosts.entries()) {
    const psql = ['psql', '-XAt', '-h', '/run/postgresql', '-U', 'postgres', '-d', 'postgres', '-c', sql]
    try {
      await host.docker('exec', `tenantry-postgres-${at + 1}`, ...psql)
      return
    } catch (error) {
      failures.push(String(error))
    }
  }
  throw new Error(`No member of the control database executes "${sql}":\n${failures.join('\n')}`)
}

/** Moves the start of the tenants' plans back by two months, and waits for the invoices of the month before last. */
async function invoice(platform: StackPlatform, owners: readonly Owner[]): Promise<void> {
  await controlSql(platform, "update plan_periods set since = date_trunc('month', now()) - interval '2 months'")
  for (const host of platform.controlHosts) await host.docker('restart', 'tenantry-control-plane')
  await platform.untilReady()
  for (const { id, name } of owners) {
    let last: unknown
    const isFinal = async () => {
      last = await platform.call('POST', `/v1/tenants/${id}/invoices/close`, { month }).catch(String)
      const { status, body } = last as { status?: number; body?: Record<string, unknown> }
      return status === 200 && body?.['state'] === 'final' ? true : undefined
    }
    await until(isFinal, 240).catch((cause: unknown) => {
      throw new Error(`The month of ${name} is not closed: ${JSON.stringify(last)}`, { cause })
    })
  }
}

/** Waits until the target has a dump of the control database that began after the call. */
async function untilDumped({ s3 }: Stack, installation: string, { logs }: StackPlatform): Promise<void> {
  const since = new Date()
  const folder = `${targetPrefix}control-database-${installation}/`
  let found: string[] = []
  const isDumped = async () => {
    const { whole } = await s3.keys()
    found = whole.filter((key) => key.startsWith(folder) && key.endsWith('/.committed'))
    const times = found.map((key) => dumpTime(key.slice(folder.length).replace('/.committed', '')))
    return times.some((time) => time > since) ? true : undefined
  }
  await until(isDumped, 240).catch(async (cause: unknown) => {
    throw new Error(`No dump after ${since.toISOString()}: ${found.join(', ')}\n${await logs()}`, { cause })
  })
}

/** Removes the platform as the guide describes. @returns the output */
async function removePlatform({ lab, files }: Stack): Promise<string> {
  const hosts = lab.hosts.flatMap(({ id, socket }) => ['--host', `${id}=unix://${socket}`])
  const args = ['--swarm', '--destroy-all-data', '--files', files, ...hosts]
  return (await run(join(project, 'deploy/remove'), args, { maxBuffer: 2 ** 24 })).stdout
}

/** Starts everything except the control planes, and restores the control database. @returns the output of the recovery */
async function recoverControlDatabase(stack: Stack): Promise<string> {
  for (const host of stack.lab.hosts) {
    const services = (await stack.compose(host, 'config', '--services')).split('\n').map((line) => line.trim())
    // The output may also contain warnings.
    const others = services.filter((name) => /^[a-z][a-z0-9-]*$/.test(name) && name !== 'control-plane')
    await stack.up(host, ...others)
  }
  const [first] = stack.lab.hosts
  return stack.compose(first, 'run', '--rm', '-T', '--entrypoint', 'tenantry-recover', 'control-plane')
}

/** Runs `npm run restore-lost-tenants`. @returns its output @throws Error with the output and the logs if it fails */
async function restoreLostTenants(platform: StackPlatform, since: Date): Promise<string> {
  const leader = await platform.untilReady()
  const options = ['--control-url', platform.controlUrl(leader), '--since', since.toISOString()]
  const restoring = run(process.execPath, ['scripts/restore-lost-tenants.ts', ...options], {
    cwd: project,
    env: { ...process.env, KEY: platform.key },
  })
  const { stdout } = await restoring.catch(async (cause: unknown) => {
    const { stdout = '', stderr = '' } = cause as { stdout?: string; stderr?: string }
    throw new Error(`The tenants were not restored:\n${stdout}${stderr}\n${await platform.logs()}`, { cause })
  })
  return stdout
}

async function hasOnlyForeign(t: Test, { lab }: Stack): Promise<void> {
  for (const host of lab.hosts)
    t.same(
      await objectsOf(host),
      { containers: ['foreign'], volumes: foreignVolumes, networks: ['foreign-net'] },
      `${host.id}: only the ${everywhere} remain`,
    )
}

t.test(
  'A platform on three hosts is removed, and rebuilt from a target and its key',
  { timeout: 2_700_000 },
  async (t) => {
    const stack = await openStack(t)
    await writeSettings(stack)
    await addForeign(stack)
    await stack.setUp()
    for (const host of stack.lab.hosts) await stack.up(host)
    const platform = await connectStack(stack)
    const owners = [
      await createOwner(platform, 'bob', 'schema-per-tenant'),
      await createOwner(platform, 'sol', 'database-per-tenant'),
      await createOwner(platform, 'ada', 'cluster-per-tenant'),
    ]
    const halted = await createOwner(platform, 'eve', 'cluster-per-tenant')
    await invoice(platform, owners)
    for (const owner of [...owners, halted]) await backUp(platform, owner)
    const before = await seen(platform, owners)
    const beforeHalt = await seen(platform, [halted])
    await suspend(platform, halted, true)
    const installation = (await readFile(join(stack.files, 'installation'), 'utf8')).trim()
    await untilDumped(stack, installation, platform)

    const output = await removePlatform(stack)
    t.match(output, `removed the installation ${installation}`)
    t.match(output, `aws s3 rm --recursive --endpoint-url '${stack.s3Endpoint}'`)
    await hasOnlyForeign(t, stack)
    const { whole } = await stack.s3.keys()
    t.ok(
      whole.some((key) => key.includes(`/${owners[2]?.id ?? ''}/`)),
      'the files in the bucket stay',
    )
    t.match(await removePlatform(stack), `removed the installation ${installation}`, 'a second run changes nothing')

    const masterKey = join(stack.directory, 'master-key')
    await copyFile(join(stack.files, 'secrets/master-key'), masterKey)
    await rm(stack.files, { recursive: true })
    await writeSettings(stack)
    const begun = performance.now()
    await stack.setUp('--recover', masterKey, '--installation', installation)
    const recovered = await recoverControlDatabase(stack)
    t.match(recovered, new RegExp(`tenants: ${owners.length + 1}\\b`))
    t.match(recovered, /New platform key, in addition to the earlier ones/)
    const started = new Date()
    for (const host of stack.lab.hosts) await stack.up(host)
    const rebuilt = await connectStack(stack, platform.key)
    t.pass('the lost platform key is valid')
    const printed = await restoreLostTenants(rebuilt, started)
    t.comment(`${printed}rebuilt in ${((performance.now() - begun) / 1_000).toFixed(0)} s`)
    for (const { id, name } of [...owners, halted])
      t.match(printed, new RegExp(`${id} \\(${name}\\): restored from the backup of `))
    t.same(await seen(rebuilt, owners), before, 'everything is as it was')

    await rebuilt.until(halted.id, ({ status }) => status === 'suspended')
    await suspend(rebuilt, halted, false)
    t.same(await seen(rebuilt, [halted]), beforeHalt, 'also a cluster that was suspended')
    await rebuilt.untilDatabaseComplete()
    for (const state of ['unknown', 'missing'])
      t.same((await rebuilt.call('GET', `/v1/backups?state=${state}`)).body['backups'], [], state)
    const late = await createOwner(rebuilt, 'fay', 'cluster-per-tenant')
    t.ok(late.id, 'and the platform creates tenants')

    await removePlatform(stack)
    await hasOnlyForeign(t, stack)
  },
)
