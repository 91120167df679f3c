// Whether the networks of a platform on several hosts are encrypted: what `deploy/setup --swarm` decides, and what it rejects later.
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { readPlatformOptions } from '#control-plane/deployment/platform-options.ts'
import type { StoredFiles } from '#control-plane/deployment/platform-secrets.ts'
import { regionsFile } from '#control-plane/deployment/regions-file.ts'
import { hostOptions, openSetup, options } from './support/open-setup.ts'

const encryptsIn = (regions: string) =>
  (JSON.parse(regions) as [{ swarm: { encrypted_networks?: boolean } }])[0].swarm.encrypted_networks

t.test('Networks are encrypted if the kernel can, unless the option states something else', async (t) => {
  const cases: [kernel: string, option: string[], encrypts: boolean, warns: boolean][] = [
    ['true', [], true, false],
    ['false', [], false, true],
    ['true', ['--encrypted-networks', 'false'], false, false],
  ]
  for (const [kernel, option, encrypts, warns] of cases) {
    const { setUp, directory, read } = await openSetup(t)
    const { stderr } = await setUp([...options, ...hostOptions(), ...option], { FAKE_KERNEL: kernel })
    t.equal(encryptsIn(await read('regions.json')), encrypts, `${kernel} ${option.join(' ')}`)
    t.equal(stderr.includes('They need a private link, such as WireGuard.'), warns)
    const calls = (await readFile(join(directory, 'calls'), 'utf8')).split('\n')
    const created = calls.filter((call) => call.startsWith('network create'))
    t.equal(created.length, 2)
    t.ok(created.every((call) => call.includes('--opt encrypted') === encrypts))
  }
  const { errorOf } = await openSetup(t)
  t.match(
    await errorOf([...options, ...hostOptions(), '--encrypted-networks', 'true'], { FAKE_KERNEL: 'false' }),
    /kernel of this host cannot encrypt networks/,
  )
})

t.test('The file of regions decides after the first run, and an option that differs is an error', (t) => {
  const files = new Map<string, string>()
  const stored: StoredFiles = {
    read: (path) => files.get(path),
    write: (path, text) => void files.set(path, text),
    keep(path, create) {
      const text = files.get(path) ?? create()
      files.set(path, text)
      return text
    },
    names: () => [],
  }
  const run = (...more: string[]) => regionsFile(readPlatformOptions([...options, ...hostOptions(), ...more]), stored)
  const first = run('--kernel-encrypts', 'true')
  t.equal(encryptsIn(first), true)
  t.equal(run('--kernel-encrypts', 'false'), first)
  t.equal(run('--kernel-encrypts', 'false', '--encrypted-networks', 'true'), first)
  const differs = {
    name: 'ConfigurationError',
    message:
      'Option --encrypted-networks states false, but regions.json has true. Correct the option, or edit regions.json.',
  }
  t.throws(() => run('--encrypted-networks', 'false'), differs)
  files.set('regions.json', first.replace(/"encrypted_networks": true,/, ''))
  t.equal(encryptsIn(run('--kernel-encrypts', 'true')), undefined, 'a file of an earlier version stays as it is')
  t.throws(() => run('--encrypted-networks', 'true'), /states true, but regions\.json has false/)
  t.throws(() => run('--encrypted-networks', 'yes'), /--encrypted-networks: yes\. Allowed: true, false\./)
  t.end()
})
