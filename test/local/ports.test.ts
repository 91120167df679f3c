// The ports of an installation remain the same, also when the number of runtimes changes and after an upgrade.
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { choosePorts } from '#local/ports.ts'
import { parseOptions } from '#local/options.ts'

t.test('Ports are chosen again, one for each runtime', async (t) => {
  const file = join(t.testdir({}), 'ports.json')
  const first = await choosePorts(file, undefined, 2)
  t.equal(first.runtimes.length, 2)
  const all = ({ runtimes, ...others }: typeof first) => [...runtimes, ...Object.values(others)]
  t.equal(new Set(all(first)).size, 6, 'all differ')
  t.same(await choosePorts(file, undefined, 2), first)
  const third = await choosePorts(file, undefined, 3)
  t.same({ ...third, runtimes: third.runtimes.slice(0, 2) }, first)
  t.equal(new Set(all(third)).size, 7)
  const { runtimes, ...others } = first
  t.same(await choosePorts(file, undefined, 1), { ...others, runtimes: runtimes.slice(0, 1) })
  t.same(JSON.parse(await readFile(file, 'utf8')), { ...others, runtimes: runtimes.slice(0, 1) })
})

t.test('The file of an earlier version with one runtime is read', async (t) => {
  const file = join(t.testdir({}), 'ports.json')
  const { runtimes, ...others } = await choosePorts(file, undefined, 1)
  const [runtime] = runtimes
  await writeFile(file, JSON.stringify({ ...others, runtime }))
  const ports = await choosePorts(file, undefined, 2)
  t.same({ ...ports, runtimes: ports.runtimes.slice(0, 1) }, { ...others, runtimes })
})

t.test('Two runtimes are the default, and one on a single core', async (t) => {
  const runtimes = (args: string[], cores: number) => parseOptions(args, { cwd: '/', cores })?.runtimes
  t.same([runtimes([], 1), runtimes([], 2), runtimes([], 64), runtimes(['--runtimes', '8'], 1)], [1, 2, 2, 8])
  for (const value of ['0', '9', '1.5', 'two', ''])
    t.throws(() => runtimes(['--runtimes', value], 2), {
      message: `Invalid --runtimes "${value}". Allowed: a whole number from 1 to 8.`,
    })
})
