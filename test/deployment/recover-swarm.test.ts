// `deploy/setup --swarm --recover` with a `docker` of the test: the files of a lost platform are written with its ID and its master key.
import { randomBytes } from 'node:crypto'
import { rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { hostOptions, openSetup, options } from './support/open-setup.ts'

const complete = [...options, ...hostOptions()]
const installation = '0d3a2f3e-6f9e-4c02-9a53-5b8f4f0d1c11'
const newKey = () => `${randomBytes(32).toString('base64')}\n`

t.test('A lost platform gets its ID and its master key, and new secrets otherwise', async (t) => {
  const { setUp, read, compose, all, directory } = await openSetup(t)
  const file = join(directory, 'copy')
  const key = newKey()
  await writeFile(file, key)
  const { stdout } = await setUp([...complete, '--recover', file, '--installation', installation])
  t.match(stdout, /start no control plane before the control database is restored/)
  t.equal(await read('installation'), `${installation}\n`)
  for (const path of ['secrets/master-key', 'hosts/n1/control-plane/secrets/master-key']) t.equal(await read(path), key)
  for (const service of ['control-plane', 'docker-proxy'])
    t.equal((await compose('n2')).services[service]?.environment?.['TENANTRY_INSTALLATION'], installation)
  t.match(await read('secrets/etcd-seed'), /^\S{40,}\n$/)

  const before = await all('.')
  await setUp([...complete, '--recover', file])
  await setUp(complete)
  t.same(await all('.'), before, 'later runs change nothing')
})

t.test('The copy of the files of a lost platform is used as it is', async (t) => {
  const { setUp, read, all, files, directory } = await openSetup(t)
  await setUp(complete)
  const before = await all('.')
  await writeFile(join(directory, 'copy'), await read('secrets/master-key'))
  await rm(join(files, 'hosts'), { recursive: true })
  await setUp([...complete, '--recover', join(directory, 'copy')])
  t.same(await all('.'), before)
})

t.test('A recovery without the ID, or with those of another platform, is rejected and changes nothing', async (t) => {
  const { setUp, errorOf, all, files, directory, read } = await openSetup(t)
  const [other, own] = [join(directory, 'other'), join(directory, 'own')]
  await writeFile(other, newKey())
  const recover = (file: string, ...more: string[]) => errorOf([...complete, '--recover', file, ...more])
  t.match(await recover('/none'), /The file of the master key, \/none, does not exist/)
  t.match(await recover(other), /Invalid value of --installation: \. Use the ID/)
  t.match(await recover(other, '--installation', 'north'), /Invalid value of --installation: north\. Use the ID/)
  t.match(await errorOf([...complete, '--installation', installation]), /Option --installation needs --recover/)
  await t.rejects(stat(files), { code: 'ENOENT' })

  await setUp(complete)
  await writeFile(own, await read('secrets/master-key'))
  const before = await all('.')
  t.match(await recover(other), /master-key is another master key/)
  t.match(await recover(own, '--installation', installation), /is of the installation .*, not of 0d3a2f3e/)
  t.same(await all('.'), before)
})
