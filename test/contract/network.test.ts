// Networks and addresses in canonical form, and prefixes of them.
import { BlockList, isIPv4 } from 'node:net'
import t from 'tap'
import { addressDigits, networkText, overlaps, prefixOf, readNetwork, type Network } from '@tenantry/contract'

const read = (text: string): Network => {
  const network = readNetwork(text)
  if (network === undefined) throw new Error(`${text} is not a network`)
  return network
}

t.test('Each network has one text', async (t) => {
  for (const [text, canonical] of [
    ['203.0.113.7', '203.0.113.7'],
    ['203.0.113.7/32', '203.0.113.7'],
    ['203.0.113.7/24', '203.0.113.0/24'],
    ['203.0.113.255/25', '203.0.113.128/25'],
    ['255.255.255.255/1', '128.0.0.0/1'],
    ['0.0.0.0/0', '0.0.0.0/0'],
    ['2001:DB8:0:0:0:0:0:1', '2001:db8::1'],
    ['2001:db8::1/128', '2001:db8::1'],
    ['2001:db8:1:2:3:4:5:6/64', '2001:db8:1:2::/64'],
    ['2001:db8:ffff::/33', '2001:db8:8000::/33'],
    ['::', '::'],
    ['::1', '::1'],
    ['::/0', '::/0'],
    ['64:ff9b::192.0.2.33', '64:ff9b::c000:221'],
    ['::ffff:192.0.2.33', '192.0.2.33'],
    ['::FFFF:C000:0221', '192.0.2.33'],
    ['::ffff:192.0.2.33/120', '192.0.2.0/24'],
  ] as const) {
    t.equal(networkText(read(text)), canonical, text)
    t.same(read(canonical), read(text))
  }
})

t.test('Any other text is no network', async (t) => {
  for (const text of [
    '',
    'localhost',
    '203.0.113',
    '203.0.113.256',
    '203.0.113.007',
    ' 203.0.113.7',
    '203.0.113.7/',
    '203.0.113.7/33',
    '203.0.113.7/-1',
    '203.0.113.7/08',
    '203.0.113.7/24/24',
    '203.0.113.7/255.255.255.0',
    '2001:db8::/129',
    '2001:db8:::1',
    'fe80::1%eth0',
    '[2001:db8::1]',
    '::ffff:192.0.2.33/24',
  ])
    t.equal(readNetwork(text), undefined, text)
  t.equal(addressDigits('203.0.113.0/24'), undefined)
  t.equal(addressDigits('fe80::1%eth0'), addressDigits('fe80::1'), 'a socket names the interface')
})

t.test('Prefixes agree with those of Node', async (t) => {
  const addresses = ['10.1.2.3', '10.1.2.131', '172.16.254.9', '2001:db8:5:a::1', '2001:db8:5:b:ffff::', 'fe80::1']
  let different = 0
  for (const network of addresses) {
    const max = isIPv4(network) ? 32 : 128
    for (let bits = 0; bits <= max; bits++) {
      const list = new BlockList()
      list.addSubnet(network, bits, isIPv4(network) ? 'ipv4' : 'ipv6')
      const { digits } = read(`${network}/${bits}`)
      // Node also compares IPv4 addresses with IPv6 networks, as if they were mapped.
      for (const address of addresses.filter((other) => isIPv4(other) === isIPv4(network))) {
        const isWithin = prefixOf(addressDigits(address) ?? '', bits) === prefixOf(digits, bits)
        if (isWithin !== list.check(address, isIPv4(address) ? 'ipv4' : 'ipv6')) different++
      }
    }
  }
  t.equal(different, 0)
})

t.test('Networks overlap when one contains the other', async (t) => {
  t.ok(overlaps(read('127.0.0.0/8'), read('127.0.0.1')))
  t.ok(overlaps(read('127.0.0.1'), read('0.0.0.0/1')))
  t.notOk(overlaps(read('126.0.0.0/8'), read('127.0.0.1')))
  t.notOk(overlaps(read('::/0'), read('127.0.0.1')), 'the families are separate')
})
