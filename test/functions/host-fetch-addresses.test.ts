// http_fetch: which hosts and addresses it reaches, in every notation.
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import t from 'tap'
import { readConfig } from '#tenant-runtime/config.ts'
import { isReachable, readNetworks } from '@tenantry/contract'
import { allowsHost, checkHost } from '#tenant-runtime/functions/host/http-hosts.ts'
import { effort, seed } from '#test/support/effort.ts'
import { internalResponses, internalHosts, specialAddresses } from '#test/egress/support/addresses.ts'
import { fetchFrom, none, serve } from './support/fetching.ts'

t.test('isReachable rejects addresses that are not on the Internet', async (t) => {
  for (const address of specialAddresses) t.notOk(isReachable(address, none), address)
  for (const address of [
    '1.1.1.1',
    '8.8.8.8',
    '9.255.255.255',
    '11.0.0.0',
    '100.63.255.255',
    '100.128.0.0',
    '126.255.255.255',
    '128.0.0.0',
    '172.15.255.255',
    '172.32.0.0',
    '192.167.255.255',
    '223.255.255.255',
    '2606:4700:4700::1111',
    '2a00:1450:4001::1',
  ]) {
    t.ok(isReachable(address, none), address)
  }
  fc.assert(
    fc.property(fc.ipV4(), (address) => {
      const [a = 0, b = 0] = address.split('.').map(Number)
      const isPrivate =
        a === 0 ||
        a === 10 ||
        a === 127 ||
        a >= 224 ||
        (a === 100 && b >= 64 && b < 128) ||
        (a === 169 && b === 254) ||
        (a === 172 && b >= 16 && b < 32) ||
        (a === 192 && b === 168) ||
        (a === 198 && (b === 18 || b === 19))
      return (
        !isPrivate ||
        (!isReachable(address, none) &&
          !isReachable(`::ffff:${address}`, none) &&
          !isReachable(`64:ff9b::${address}`, none))
      )
    }),
    { seed, numRuns: effort({ small: 2_000, full: 100_000 }) },
  )
})

t.test('isReachable accepts the networks that the operator allows, and no other', async (t) => {
  const networks = readNetworks(['10.1.0.0/16', 'fd12::/16', '127.0.0.1'])
  for (const address of ['10.1.0.1', '10.1.255.255', 'fd12::1', '127.0.0.1', '8.8.8.8'])
    t.ok(isReachable(address, networks), address)
  for (const address of ['10.0.255.255', '10.2.0.0', 'fd13::1', '127.0.0.2', '192.168.0.1', '::1'])
    t.notOk(isReachable(address, networks), address)
  for (const bad of [
    '10.1.0.0/33',
    'fd12::/129',
    '10.1/16',
    'a.example',
    '10.1.0.0/16/1',
    '10.1.0.0/',
    '10.1.0.0/-1',
    '/8',
  ])
    t.throws(() => readNetworks([bad]), /^Invalid network /, bad)
})

t.test('The runtime reads allowed networks from the environment, and rejects an invalid one', async (t) => {
  const directory = await mkdtemp(join(tmpdir(), 'tenantry-config-'))
  t.teardown(() => rm(directory, { recursive: true }))
  const token = join(directory, 'token')
  await writeFile(token, 'x'.repeat(40))
  const read = (networks: string) =>
    readConfig({
      TENANTRY_CONTROL_URL: 'http://control',
      TENANTRY_INTERNAL_TOKEN_FILE: token,
      TENANTRY_DATA: '/data',
      TENANTRY_FUNCTIONS_MAY_REACH: networks,
    }).functionsMayReach
  t.ok(isReachable('10.1.2.3', read('10.1.0.0/16, fd12::/16')))
  t.ok(isReachable('fd12::3', read('10.1.0.0/16, fd12::/16')))
  t.notOk(isReachable('10.1.2.3', read('')))
  t.throws(() => read('10.1.0.0/16,intranet'), { message: /^TENANTRY_FUNCTIONS_MAY_REACH: Invalid network "intranet"/ })
})

t.test('A list of hosts allows exactly its hosts and ports', async (t) => {
  const allows = (host: string, url: string) => allowsHost([checkHost(host)], new URL(url))
  const good: [host: string, url: string][] = [
    ['api.example.com', 'https://api.example.com/x'],
    ['api.example.com', 'http://api.example.com'],
    ['API.example.com', 'https://api.EXAMPLE.com'],
    ['*.example.com', 'https://a.example.com'],
    ['*.example.com', 'https://a.b.example.com'],
    ['a.example:8080', 'http://a.example:8080'],
    ['a.example:443', 'https://a.example'],
    ['a.example:80', 'http://a.example'],
    ['bücher.example', 'https://xn--bcher-kva.example'],
    ['10.0.0.1:8080', 'http://10.0.0.1:8080'],
    ['10.0.0.1', 'http://0xa.1'],
    ['[::1]:81', 'http://[0:0::1]:81'],
  ]
  for (const [host, url] of good) t.ok(allows(host, url), `${host} ${url}`)
  const bad: [host: string, url: string][] = [
    ['example.com', 'https://a.example.com'],
    ['*.example.com', 'https://example.com'],
    ['*.example.com', 'https://aexample.com'],
    ['example.com', 'https://example.com.evil.example'],
    ['example.com', 'https://example.com.'],
    ['example.com', 'https://example.com:8443'],
    ['a.example:8080', 'https://a.example'],
    ['a.example:443', 'http://a.example'],
    ['a.example:80', 'https://a.example'],
    ['example.com', 'https://evil.example/example.com'],
  ]
  for (const [host, url] of bad) t.notOk(allows(host, url), `${host} ${url}`)
  for (const host of [
    '',
    '*',
    '*.',
    '.',
    'a b',
    'a/b',
    'a?b',
    'a#b',
    'u:p@a',
    'u@a',
    'https://a',
    '*.*.a',
    'a.*',
    '*a.example',
    '[::1',
    'a:0',
    'a:65536',
    'a:x',
    'a:',
    '*.[::1]',
    '*.1.2.3.4',
    'a\\b',
    '%61',
  ])
    t.throws(() => checkHost(host), SyntaxError, host)
})

t.test('http_fetch reaches no internal address, in any notation', async (t) => {
  const { port, seen } = await serve(t, (_request, response) => response.end())
  for (const host of internalHosts) {
    const url = `http://${host}:${port}/`
    // http_fetch rejects the address even where the list of hosts contains it.
    const hosts = [new URL(url).host]
    t.equal(
      (await fetchFrom({ url }, { hosts, reachable: none, resolve: async () => Promise.reject(new Error('no name')) }))
        .code,
      'ADDRESS_REJECTED',
      host,
    )
  }
  const named = (addresses: string[]) =>
    fetchFrom(
      { url: `http://a.example:${port}` },
      { hosts: [`a.example:${port}`], reachable: none, resolve: async () => addresses },
    )
  for (const addresses of internalResponses)
    t.equal((await named(addresses)).code, 'ADDRESS_REJECTED', addresses.join(' '))
  t.equal((await named([])).code, 'FETCH_FAILED')
  t.same(seen, [])
})

t.test('http_fetch resolves a name once, and connects to the address that it checked', async (t) => {
  const { port, seen } = await serve(t, (_request, response) => response.end('reached'))
  let lookups = 0
  // The second response for a rebinding name is an internal address.
  const resolve = async () => (lookups++ === 0 ? ['127.0.0.1'] : ['127.0.0.2'])
  const result = await fetchFrom(
    { url: `http://rebinding.example:${port}` },
    { hosts: [`rebinding.example:${port}`], reachable: readNetworks(['127.0.0.1']), resolve },
  )
  t.equal(result.body.toString(), 'reached')
  t.equal(lookups, 1)
  t.equal(
    (
      await fetchFrom(
        { url: `http://rebinding.example:${port}` },
        { hosts: [`rebinding.example:${port}`], reachable: readNetworks(['127.0.0.1']), resolve },
      )
    ).code,
    'ADDRESS_REJECTED',
  )
  t.equal(seen.length, 1)
})
