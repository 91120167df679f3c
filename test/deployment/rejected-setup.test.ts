// `deploy/setup --swarm` ends with the reason, and changes nothing, when its options or files do not fit.
import { stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { hostOptions, hosts, openSetup, options } from './support/open-setup.ts'

const complete = [...options, ...hostOptions()]

t.test('The program ends with the reason, and writes nothing, when a host or a file is not ready', async (t) => {
  const { errorOf, directory, files } = await openSetup(t)
  t.match(await errorOf([...complete, '--domain']), /Option --domain needs a value/)
  t.match(await errorOf(complete, { FAKE_MANAGER: 'false' }), /not a manager of a swarm/)
  t.match(await errorOf([...complete, '--tls', 'files']), /certificates\/certificate\.pem does not exist/)
  t.match(await errorOf([...complete, '--control-database-url-file', '/none']), /The file \/none does not exist/)
  await writeFile(join(directory, 'networks'), 'tenantry-engines 10.9.0.0/26\n')
  t.match(
    await errorOf(complete),
    /The network tenantry-engines has the subnet 10\.9\.0\.0\/26, but --platform-range requires 10\.200\.0\.0\/26\./,
  )
  await t.rejects(stat(files), { code: 'ENOENT' })
})

t.test(
  'A later run with options that differ from those of the first one is rejected, and changes nothing',
  async (t) => {
    const { setUp, errorOf, directory, files, read, all } = await openSetup(t)
    await setUp(complete)
    const before = await all('.')
    const [n1 = '', n2 = '', ...others] = hosts
    const cases: [args: string[], message: string][] = [
      [
        [...complete, '--domain', 'b.example.org'],
        '--domain states b.example.org, but regions.json has apps.example.org',
      ],
      [
        [...complete, '--network-range', '10.211.0.0/16'],
        '--network-range states 10.211.0.0/16, but regions.json has 10.210.0.0/16',
      ],
      [[...complete, '--gateway-port', '81'], '--gateway-port states 81, but regions.json has 8080'],
      [[...complete, '--postgres-port', '5433'], '--postgres-port states 5433, but regions.json has 5432'],
      [[...complete, '--s3-bucket', 'other'], '--s3-bucket states other, but regions.json has files'],
      [[...complete, '--s3-region', 'north'], '--s3-region states north, but regions.json has none'],
      [[...complete, '--region', 'north'], 'regions.json has no region "north"'],
      [
        [...complete, '--platform-range', '10.199.0.0/24'],
        '--platform-range 10.199.0.0/24, but the first one had --platform-range 10.200.0.0/24',
      ],
      [
        [...options, ...hostOptions([n1, 'n2=10.99.0.9', ...others])],
        '--host states n2=10.99.0.9, but regions.json has n2=10.99.0.2',
      ],
      [
        [...options, ...hostOptions([n1.replace('rack-1', 'rack-2'), n2, ...others])],
        '--host states n1=10.99.0.1,zone=rack-2, but regions.json has n1=10.99.0.1,zone=rack-1',
      ],
      [[...complete, '--name', 'other'], '--name other, but the first one had --name tenantry'],
      [
        [...complete, '--control-database-url-file', join(directory, 's3-key')],
        'has --control-database-url-file, but the first one had no --control-database-url-file',
      ],
      [[...options, ...hostOptions([n2, n1, ...others])], 'regions.json has the hosts n1, n2, n3, n4'],
    ]
    for (const [args, message] of cases) t.match(await errorOf(args), message, message)
    t.same(await all('.'), before)
    await writeFile(join(files, 'regions.json'), (await read('regions.json')).replace('"port": 8080', '"port": "8080"'))
    t.match(
      await errorOf(complete),
      /regions\.json has an invalid region "local": \/swarm\/gateway\/port must be integer/,
    )
  },
)

t.test('A later run without the control database of the operator is rejected', async (t) => {
  const { setUp, errorOf, directory, all } = await openSetup(t)
  const external = ['--control-database-url-file', join(directory, 'url')]
  await writeFile(join(directory, 'url'), 'postgresql://postgres:secret@db.example.org/control\n')
  await setUp([...complete, ...external])
  const before = await all('.')
  t.match(
    await errorOf(complete),
    'has no --control-database-url-file, but the first one had --control-database-url-file',
  )
  t.same(await all('.'), before)
  await setUp([...complete, ...external])
  t.same(await all('.'), before)
})

t.test('An empty secret, for example after a loss of power, is rejected', async (t) => {
  const { setUp, errorOf, files } = await openSetup(t)
  await setUp(complete)
  await writeFile(join(files, 'secrets/master-key'), '')
  t.match(await errorOf(complete), /The file secrets\/master-key is empty\./)
})
