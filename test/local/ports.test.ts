// The ports of an installation remain the same, also when the numbers of runtimes and gateways change and after an upgrade.
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { choosePorts, sparePorts } from '#local/ports.ts'

t.test('Ports are chosen again, one for each runtime and each gateway', async (t) => {
  const file = join(t.testdir({}), 'ports.json')
  const choose = (runtimes: number, gateways: number) => choosePorts(file, undefined, { runtimes, gateways })
  const first = await choose(2, 2)
  const { runtimes, gatewayInternals, ...others } = first
  t.same([runtimes.length, gatewayInternals.length], [2, 2])
  const all = (ports: typeof first) => new Set(Object.values(ports).flat())
  t.equal(all(first).size, 9, 'all differ')
  t.same(await choose(2, 2), first)
  const third = await choose(3, 3)
  t.same(
    { ...third, runtimes: third.runtimes.slice(0, 2), gatewayInternals: third.gatewayInternals.slice(0, 2) },
    first,
  )
  t.equal(all(third).size, 11)
  const spare = await sparePorts(file, third, 2)
  t.equal(new Set([...all(third), ...spare]).size, 13, 'spare ports are others')
  const single = { ...others, runtimes: runtimes.slice(0, 1), gatewayInternals: gatewayInternals.slice(0, 1) }
  t.same(await choose(1, 1), single)
  t.same(JSON.parse(await readFile(file, 'utf8')), single)
})

t.test('The file of an earlier version with one runtime and one gateway is read', async (t) => {
  const file = join(t.testdir({}), 'ports.json')
  const first = await choosePorts(file, undefined, { runtimes: 1, gateways: 1 })
  const { runtimes, gatewayInternals, ...others } = first
  await writeFile(file, JSON.stringify({ ...others, runtime: runtimes[0], gatewayInternal: gatewayInternals[0] }))
  const ports = await choosePorts(file, undefined, { runtimes: 2, gateways: 2 })
  t.same(
    { ...ports, runtimes: ports.runtimes.slice(0, 1), gatewayInternals: ports.gatewayInternals.slice(0, 1) },
    first,
  )
})
