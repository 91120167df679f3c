// Which addresses are within an IPv4 range, compared with the bits of its prefix.
import fc from 'fast-check'
import t from 'tap'
import { seed } from '#test/support/effort.ts'
import { ipv4Number, isWithin, parseIpv4Range } from '#gateway/tenants/ipv4-range.ts'

const address = fc.tuple(fc.nat(255), fc.nat(255), fc.nat(255), fc.nat(255))
const bitsOf = (octets: readonly number[]) => octets.map((octet) => octet.toString(2).padStart(8, '0')).join('')
const octetsOf = (bits: string) => Array.from({ length: 4 }, (_, at) => parseInt(bits.slice(at * 8, at * 8 + 8), 2))

t.test('An address is within a range when their first bits agree, also as a mapped IPv6 address', (t) => {
  const near = fc.tuple(address, fc.nat(32), fc.nat(32), address).map(([base, prefix, shared, rest]) => {
    const first = octetsOf(bitsOf(base).slice(0, prefix).padEnd(32, '0'))
    return { first, prefix, other: octetsOf(bitsOf(first).slice(0, shared) + bitsOf(rest).slice(shared)) }
  })
  const property = fc.property(near, fc.constantFrom('', '::ffff:', '::FFFF:'), ({ first, prefix, other }, carrier) => {
    const range = parseIpv4Range(`${first.join('.')}/${prefix}`)
    const number = ipv4Number(`${carrier}${other.join('.')}`)
    const expected = bitsOf(first).slice(0, prefix) === bitsOf(other).slice(0, prefix)
    return range !== undefined && number !== undefined && isWithin(range, number) === expected
  })
  t.doesNotThrow(() => fc.assert(property, { numRuns: 300, seed }))
  t.end()
})

t.test('A range must begin at a multiple of its size', (t) => {
  const property = fc.property(address, fc.nat(32), (octets, prefix) => {
    const begins = !bitsOf(octets).slice(prefix).includes('1')
    return (parseIpv4Range(`${octets.join('.')}/${prefix}`) !== undefined) === begins
  })
  t.doesNotThrow(() => fc.assert(property, { numRuns: 300, seed }))
  t.end()
})

t.test('Invalid ranges and addresses return undefined', (t) => {
  for (const text of [
    '',
    '10.0.0.0',
    '10.0.0.0/',
    '10.0.0.0/33',
    '10.0.0.0/08',
    '10.0.0.0/-1',
    '10.0.0/8',
    '10.0.0.0.0/8',
    '256.0.0.0/8',
    '010.0.0.0/8',
    ' 10.0.0.0/8',
    '10.0.0.0/8 ',
    '::ffff:10.0.0.0/8',
    'fd00::/8',
  ]) {
    t.equal(parseIpv4Range(text), undefined, text)
  }
  for (const text of [
    '',
    '::1',
    'fd00::10.0.0.1',
    '::ffff:10.0.0',
    '10.0.0.256',
    '1.2.3.4.5',
    '01.2.3.4',
    '10.0.0.1\n',
  ])
    t.equal(ipv4Number(text), undefined, text)
  t.end()
})
