// `deploy/setup --swarm` ends with the reason, and changes nothing, when its options or files do not fit.
import { stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { hostOptions, openSetup, options } from './support/open-setup.ts'

const complete = [...options, ...hostOptions()]

t.test('The program ends with the reason, and writes nothing, when a host or a file is not ready', async (t) => {
  const { errorOf, directory } = await openSetup(t)
  t.match(await errorOf([...complete, '--domain']), /Option --domain needs a value/)
  t.match(await errorOf(complete, { FAKE_MANAGER: 'false' }), /not a manager of a swarm/)
  t.match(await errorOf([...complete, '--tls', 'files']), /certificates\/certificate\.pem does not exist/)
  await t.rejects(stat(join(directory, 'files/hosts')))
})

t.test('An empty secret, for example after a loss of power, is rejected', async (t) => {
  const { setUp, errorOf, files } = await openSetup(t)
  await setUp(complete)
  await writeFile(join(files, 'secrets/master-key'), '')
  t.match(await errorOf(complete), /The file secrets\/master-key is empty\./)
})
