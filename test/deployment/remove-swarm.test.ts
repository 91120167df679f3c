// `deploy/remove --swarm` with a `docker` of the test: what it removes on each host, in which order, and what stays.
import { execFile } from 'node:child_process'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import t, { type Test } from 'tap'
import { openFakeHosts, type FakeObjects } from './support/fake-hosts.ts'

const run = promisify(execFile)
const project = new URL('../../', import.meta.url).pathname
const installation = '0d3a2f3e-6f9e-4c02-9a53-5b8f4f0d1c11'
const stack = `t_${'1'.repeat(20)}`
const engines = { n1: 'unix:///run/n1.sock', n2: 'ssh://root@10.99.0.2', n3: 'ssh://root@10.99.0.3/run/n3.sock' }
const own = { 'tenantry.installation': installation, 'tenantry.stack': stack }
const composed = (service: string) => ({
  'com.docker.compose.project': 'tenantry',
  'com.docker.compose.service': service,
})
const foreign = { 'tenantry.installation': 'another', 'tenantry.stack': stack }

/** Objects of a host, of which only those with "foreign" in their names are of others. */
const objects = (services: readonly string[], volumes: FakeObjects['volume'] = []): FakeObjects => ({
  container: [
    ...services.map((name) => ({ name: `tenantry-${name}`, labels: composed(name) })),
    { name: `tenantry-${stack}-postgres`, labels: own },
    { name: 'foreign-tenant', labels: foreign },
    {
      name: 'foreign',
      labels: { 'com.docker.compose.project': 'shop', 'com.docker.compose.service': 'control-plane' },
    },
  ],
  volume: [
    { name: 'tenantry_caddy', labels: composed('caddy') },
    { name: 'foreign' },
    { name: `foreign-tenantry-${stack}-data` },
    ...volumes,
  ],
})

async function openPlatform(t: Test, databaseSubnet = '10.200.0.64/26') {
  const directory = t.testdir()
  const files = join(directory, "plat'form")
  for (const host of ['n1', 'n2', 'n3']) {
    await mkdir(join(files, 'hosts', host), { recursive: true })
    await writeFile(join(files, 'hosts', host, 'docker-compose.yml'), 'services: {}\n')
    await writeFile(join(files, 'hosts', host, '.env'), 'COMPOSE_PROJECT_NAME=tenantry\n')
  }
  await mkdir(join(files, 'secrets'))
  await writeFile(join(files, 'installation'), `${installation}\n`)
  await writeFile(
    join(files, 'fixed-options'),
    '--name tenantry\n--platform-range 10.200.0.0/24\nno --control-database-url-file\n',
  )
  const s3 = { endpoint: 'https://s3.example.org', bucket: 'files', prefix: 'north/', access_key_id: 'key' }
  await writeFile(join(files, 'regions.json'), JSON.stringify([{ id: 'local', swarm: { storage: { s3 } } }], null, 2))
  const hosts = await openFakeHosts(
    directory,
    {
      [engines.n1]: objects(['control-plane', 'caddy']),
      // An engine has created this volume again, without labels.
      [engines.n2]: objects(['control-plane', 'caddy'], [{ name: `tenantry-${stack}-data` }]),
      [engines.n3]: objects(
        ['caddy'],
        [
          { name: `tenantry-${stack}-files`, labels: own },
          { name: `tenantry-${stack}-foreign`, labels: foreign },
        ],
      ),
    },
    [
      { name: `tenantry-${stack}-net`, labels: own, failures: 1 },
      { name: 'tenantry-engines', subnet: '10.200.0.0/26' },
      { name: 'tenantry-database', subnet: databaseSubnet },
      { name: 'foreign', subnet: '10.200.1.0/26' },
    ],
  )
  const remove = async (...args: string[]): Promise<string> => {
    const env = { ...process.env, PATH: `${hosts.bin}:${process.env['PATH'] ?? ''}` }
    return (await run(join(project, 'deploy/remove'), ['--swarm', '--files', files, ...args], { env })).stdout
  }
  return {
    ...hosts,
    files,
    remove,
    /** Returns what the program writes to its standard error; empty if it succeeds. */
    errorOf: (...args: string[]): Promise<string> =>
      remove(...args).then(
        () => '',
        (error: unknown) => (error instanceof Error && 'stderr' in error ? String(error.stderr) : ''),
      ),
  }
}

const hostOptions = (addresses: Readonly<Record<string, string>> = engines) =>
  Object.entries(addresses).flatMap(([id, engine]) => ['--host', `${id}=${engine}`])
const complete = ['--destroy-all-data', ...hostOptions()]

t.test(
  'All objects of the platform are removed on each host, the control planes first',
  { timeout: 120_000 },
  async (t) => {
    const { remove, names, calls, files } = await openPlatform(t)
    const output = await remove(...complete)
    const others = ['foreign', 'foreign', 'foreign-tenant', `foreign-tenantry-${stack}-data`]
    t.same(await names(), {
      [engines.n1]: others,
      [engines.n2]: others,
      [engines.n3]: [...others, `tenantry-${stack}-foreign`],
      all: ['foreign'],
    })
    const changes = (await calls()).filter((call) => / (?:rm|compose .*down|volume rm|network rm) /.test(call))
    t.same(changes.slice(0, 2), [
      `${engines.n1} rm --force tenantry-control-plane`,
      `${engines.n2} rm --force tenantry-control-plane`,
    ])
    t.match(
      changes[3],
      /^unix:\/\/\/run\/n1\.sock compose --project-directory .*\/hosts\/n1 --env-file .* --file .* down --volumes$/,
    )
    t.match(output, `removed the installation ${installation} from the hosts: n1 n2 n3`)
    t.match(output, `rm -r -- '${files.replace("'", "'\\''")}/secrets'`)
    t.match(output, 'on n2         the copy of')
    t.match(output, /\n +ssh root@10\.99\.0\.3 rm -r -- \/etc\/tenantry\n/)
    t.match(output, /\n +docker -H ssh:\/\/root@10\.99\.0\.2 image rm tenantry\/postgres:latest/)
    t.match(
      output,
      "aws s3 rm --recursive --endpoint-url 'https://s3.example.org' --exclude '*' --include 't_*' 's3://files/north/'",
    )
    t.match(await remove(...complete), 'removed the installation', 'a second run changes nothing')
  },
)

t.test('A network of another range, and a host that is gone, stay as they are', { timeout: 120_000 }, async (t) => {
  const { remove, names } = await openPlatform(t, '10.9.0.0/26')
  const { n1, n2 } = engines
  await remove('--destroy-all-data', ...hostOptions({ n1, n2 }), '--gone', 'n3')
  const found = await names()
  t.same(found['all'], ['foreign', 'tenantry-database'])
  t.ok(found[engines.n3]?.includes('tenantry-caddy'))
})

t.test('Nothing is removed before all hosts are named, respond and are different', async (t) => {
  const { errorOf, names } = await openPlatform(t)
  const before = await names()
  const { n1, n2 } = engines
  const cases: [args: string[], message: RegExp][] = [
    [hostOptions(), /Confirm it with --destroy-all-data/],
    [['--destroy-all-data', ...hostOptions({ n1, n2 })], /The host n3 .* has no --host\. .* use --gone n3/],
    [
      ['--destroy-all-data', ...hostOptions({ n1, n2, n3: 'unix:///silent' })],
      /n3, unix:\/\/\/silent, does not respond/,
    ],
    [['--destroy-all-data', ...hostOptions({ n1, n2, n3: `${n2}again` })], /name one engine twice: ssh:/],
    [[...complete, ...hostOptions({ n4: 'unix:///n4' })], /has no host n4/],
    [[...complete, ...hostOptions({ n1 })], /The host n1 has several options --host/],
    [[...complete, '--host', 'n1'], /Invalid value of --host: n1\. Allowed: ID=ENGINE\./],
    [[...complete, '--host'], /Option --host needs a value/],
    [[...complete, '--all', 'yes'], /Unknown option: --all/],
    [[...complete, '--files', '/nowhere'], /\/nowhere\/installation can't be read/],
  ]
  for (const [args, message] of cases) t.match(await errorOf(...args), message, String(message))
  t.same(await names(), before)
})
