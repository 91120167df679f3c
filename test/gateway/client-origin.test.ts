// The address of the client, from the headers of a request that came through proxies.
import fc from 'fast-check'
import t from 'tap'
import { clientOrigin } from '#gateway/forward/client-origin.ts'
import { parseIpv4Ranges } from '#gateway/tenants/ipv4-range.ts'
import { effort, seed } from '#test/support/effort.ts'

const trusted = parseIpv4Ranges('10.0.0.0/30, 192.168.7.7') ?? []
const nothing = { for: '', proto: '', host: '' }
const origin = (peer: string, forwarded: Partial<typeof nothing>) =>
  clientOrigin(peer, { host: 'acme.localhost', forwarded: { ...nothing, ...forwarded } }, trusted)

t.test('The client is the right-most address that is not a trusted proxy', async (t) => {
  const cases: [string, string, string][] = [
    ['10.0.0.1', '203.0.113.7', '203.0.113.7'],
    ['::ffff:10.0.0.1', '203.0.113.7', '203.0.113.7'],
    ['10.0.0.1', '6.6.6.6, 203.0.113.7,192.168.7.7 , 10.0.0.2', '203.0.113.7'],
    ['10.0.0.1', '192.168.7.7, 10.0.0.2', '192.168.7.7'],
    ['10.0.0.1', '6.6.6.6, unknown, 10.0.0.2', '10.0.0.2'],
    ['10.0.0.1', '6.6.6.6,', '10.0.0.1'],
    ['10.0.0.1', '6.6.6.6, 203.0.113.7:80', '10.0.0.1'],
    ['10.0.0.1', '2001:db8::1', '2001:db8::1'],
    ['10.0.0.1', '', '10.0.0.1'],
    ['10.0.0.4', '203.0.113.7', '10.0.0.4'],
    ['::ffff:203.0.113.9', '6.6.6.6', '203.0.113.9'],
    ['2001:db8::1', '6.6.6.6', '2001:db8::1'],
    ['', '6.6.6.6', ''],
  ]
  for (const [peer, list, address] of cases)
    t.equal(origin(peer, { for: list }).address, address, `${peer} sends ${list}`)
})

t.test('Protocol and host are the last valid ones that a trusted proxy sends', async (t) => {
  t.match(origin('10.0.0.1', { proto: 'https', host: 'a.example.org:8443' }), {
    proto: 'https',
    host: 'a.example.org:8443',
  })
  t.match(origin('10.0.0.1', { proto: 'https, http', host: 'evil, b.example.org' }), {
    proto: 'http',
    host: 'b.example.org',
  })
  t.match(origin('10.0.0.1', { proto: 'javascript', host: 'a b' }), { proto: 'http', host: 'acme.localhost' })
  t.match(origin('10.0.0.1', {}), { proto: 'http', host: 'acme.localhost' })
  t.match(origin('203.0.113.9', { proto: 'https', host: 'evil' }), { proto: 'http', host: 'acme.localhost' })
})

t.test('A forged list of addresses never changes the address of the client', async (t) => {
  const client = '203.0.113.7'
  const forged = fc.array(
    fc.oneof(fc.constantFrom('10.0.0.1', '192.168.7.7', '6.6.6.6', '', 'x', '::1'), fc.string()),
    { maxLength: 5 },
  )
  const through = fc.array(fc.constantFrom('10.0.0.1', '10.0.0.3', '192.168.7.7'), { maxLength: 3 })
  const property = fc.property(
    forged,
    through,
    (words, proxies) => origin('10.0.0.2', { for: [...words, client, ...proxies].join(', ') }).address === client,
  )
  fc.assert(property, { numRuns: effort({ small: 500, full: 50_000 }), seed })
  t.pass('for every list')
})
