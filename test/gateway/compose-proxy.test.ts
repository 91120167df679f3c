// With Docker Compose, the gateway knows Caddy by an address that deploy/setup chooses. A fake of Docker's command line lets
// deploy/setup run without an engine; no container is started here.
import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { chmod, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import t, { type Test } from 'tap'
import { overlaps, parseRange, regionAddress, regionSubnets } from '#control-plane/stacks/subnets.ts'
import { isTrusted } from '#gateway/forward/client-origin.ts'
import { parseIpv4Ranges } from '#gateway/tenants/ipv4-range.ts'

const project = new URL('../../', import.meta.url).pathname
const compose = await readFile(join(project, 'docker-compose.yml'), 'utf8')

/** Returns the text of an entry at the second level of docker-compose.yml, such as a service. */
function entry(name: string): string {
  return compose.split(/\n(?= {2}\S)/).find((text) => text.startsWith(`  ${name}:\n`)) ?? ''
}

/** Returns a text of docker-compose.yml with the values of the settings, as Compose does. */
function interpolated(text: string, settings: Record<string, string>): string {
  return text.replace(
    /\$\{(\w+)(?::-([^}]*))?\}/g,
    (_, name: string, fallback = '') => settings[name] || String(fallback),
  )
}

/** Returns the one match of a pattern in docker-compose.yml. */
function found(text: string, pattern: RegExp): string {
  const value = pattern.exec(text)?.[1]
  if (value === undefined) throw new Error(`docker-compose.yml has no ${String(pattern)}`)
  return value
}

/** Returns a function that runs deploy/setup with a range, and returns the settings that it has written. */
async function prepareSetup(t: Test) {
  const directory = await mkdtemp(join(tmpdir(), 'tenantry-setup-'))
  t.teardown(() => rm(directory, { recursive: true, force: true }))
  const programs = join(directory, 'programs')
  await mkdir(programs)
  for (const [name, script] of Object.entries({ docker: 'echo true', chown: 'true', id: 'echo 0' })) {
    await writeFile(join(programs, name), `#!/bin/sh\n${script}\n`)
    await chmod(join(programs, name), 0o755)
  }
  const socket = join(directory, 'docker.sock')
  const engine = createServer().listen(socket)
  await once(engine, 'listening')
  t.teardown(() => engine.close())
  const file = join(directory, 'settings')
  const run = async (range?: string) => {
    const options = ['--files', directory, '--settings', file, '--docker-socket', socket]
    await promisify(execFile)(
      join(project, 'deploy/setup'),
      range === undefined ? options : [...options, '--network-range', range],
      { env: { ...process.env, PATH: `${programs}:${process.env['PATH'] ?? ''}` } },
    )
    const lines = (await readFile(file, 'utf8')).trim().split('\n')
    return Object.fromEntries(lines.map((line) => line.split('=', 2) as [string, string]))
  }
  return { file, run }
}

t.test('The gateway trusts the address of Caddy, and no other one of their network', async (t) => {
  for (const range of ['10.201.0.0/16', '10.17.16.0/20']) {
    const settings = await (await prepareSetup(t)).run(range)
    const network = found(interpolated(entry('proxied'), settings), /subnet: "([^"]+)"/)
    const caddy = found(interpolated(entry('caddy'), settings), /proxied: \{ipv4_address: "([^"]+)"/)
    const gateway = found(interpolated(entry('gateway'), settings), /proxied: \{ipv4_address: "([^"]+)"/)
    const trusted = parseIpv4Ranges(found(interpolated(entry('gateway'), settings), /TRUSTED_PROXIES: (.*)/)) ?? []
    const parsed = parseRange(range)
    const { net, proxy } = regionSubnets(parsed)
    t.equal(network, proxy, 'the half of the region that it does not use itself')
    t.notOk(overlaps(parseSubnet(network), parseSubnet(net)))
    t.same(
      [caddy, gateway],
      [130, 131].map((last) => regionAddress(parsed, last)),
    )
    t.ok(isTrusted(caddy, trusted))
    for (const other of [gateway, regionAddress(parsed, 129), regionAddress(parsed, 11), '172.18.0.1'])
      t.notOk(isTrusted(other, trusted), other)
  }
})

t.test('Caddy connects to a name of the gateway that only this network has', async (t) => {
  const caddyfile = await readFile(join(project, 'deploy/Caddyfile'), 'utf8')
  const name = found(caddyfile, /reverse_proxy (\S+):4401/)
  t.match(entry('gateway'), `aliases: [${name}]`)
  t.equal(compose.split(name).length, 2)
  t.match(entry('proxied'), /internal: true/)
})

t.test('Each client address has its default limits, unless the operator sets others', async (t) => {
  const settings = await (await prepareSetup(t)).run()
  for (const limit of ['CONNECTIONS', 'REQUESTS', 'REJECTIONS']) {
    const name = `TENANTRY_${limit}_PER_ADDRESS`
    const value = (more: object) =>
      found(interpolated(entry('gateway'), { ...settings, ...more }), new RegExp(`${name}: (.*)`))
    t.equal(value({}), '')
    t.equal(value({ [name]: '7' }), '7')
  }
  const proxies = { ...settings, TENANTRY_TRUSTED_PROXIES: '192.0.2.1,192.0.2.16/28' }
  const list = found(interpolated(entry('gateway'), proxies), /TRUSTED_PROXIES: (.*)/)
  for (const address of ['10.201.0.130', '192.0.2.1', '192.0.2.17'])
    t.ok(isTrusted(address, parseIpv4Ranges(list) ?? []), address)
})

t.test('deploy/setup adds the network to settings of an earlier version, once', async (t) => {
  const { file, run } = await prepareSetup(t)
  const settings = await run('10.17.16.0/20')
  const whole = await readFile(file, 'utf8')
  await writeFile(file, whole.replace(/^TENANTRY_(?:PROXY|CADDY|GATEWAY)_.*\n/gm, ''))
  t.same(await run(), settings, 'from the range of the settings, not from the option')
  const again = await readFile(file, 'utf8')
  await run()
  t.equal(await readFile(file, 'utf8'), again)
})

t.test('Without these settings, Compose uses those of the default range', async (t) => {
  const { TENANTRY_PROXY_NETWORK, TENANTRY_CADDY_ADDRESS, TENANTRY_GATEWAY_ADDRESS } = await (
    await prepareSetup(t)
  ).run()
  for (const [name, value] of Object.entries({
    TENANTRY_PROXY_NETWORK,
    TENANTRY_CADDY_ADDRESS,
    TENANTRY_GATEWAY_ADDRESS,
  }))
    t.ok(compose.includes(`\${${name}:-${value}}`), name)
})

function parseSubnet(cidr: string) {
  const [address = '', prefix] = cidr.split('/')
  return { first: address.split('.').reduce((sum, octet) => sum * 256 + Number(octet), 0), prefix: Number(prefix) }
}
