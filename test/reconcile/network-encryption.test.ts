// The condition that states whether the traffic between the hosts of a region is encrypted.
import t from 'tap'
import { createRegionConditions } from '#control-plane/reconcile/region-conditions.ts'
import { networkEncryption } from '#control-plane/reconcile/network-encryption.ts'
import { stoppedClock } from '#test/support/control-plane/clock.ts'
import { surroundings } from '../engines/several-hosts.ts'

const { docker } = surroundings
const encrypting = { ...docker, encrypted_networks: true }
const network = (stack: string, subnet: string, isEncrypted?: boolean) => ({
  id: stack,
  name: `tenantry-${stack}-net`,
  labels: { installation: 'i', stack },
  subnet,
  internal: true,
  ...(isEncrypted === undefined ? {} : { isEncrypted }),
  members: [],
  addresses: {},
})

t.test('Without the setting, the region requires a private link, and names WireGuard', (t) => {
  const expected = {
    status: 'False',
    reason: 'PrivateLinkRequired',
    message: /^Docker does not encrypt the networks between the hosts\. .*WireGuard.* TLS in any case\.$/,
  }
  t.match(networkEncryption(docker, 'region-r', { networks: [] }), expected)
  t.match(networkEncryption({ ...docker, encrypted_networks: false }, 'region-r', { networks: [] }), expected)
  t.end()
})

t.test('With it, the networks that exist decide, because none changes after it was created', (t) => {
  const own = network('region-r', '10.1.0.0/25', true)
  const tenants = [64, 128, 192].map((at) => network(`t_${at}`, `10.1.1.${at}/26`))
  const of = (networks: ReturnType<typeof network>[]) => networkEncryption(encrypting, 'region-r', { networks })
  t.same(of([own, network('t_1', '10.1.1.0/26', true)]), { status: 'True', reason: 'Observed', message: '' })
  t.match(of([network('region-r', '10.1.0.0/25')]), {
    status: 'False',
    reason: 'PrivateLinkRequired',
    message: /^These networks were created without encryption: tenantry-region-r-net\. .*WireGuard/,
  })
  t.match(of([own, ...tenants, network('t_2', '10.1.2.0/26')]), {
    message: /: tenantry-t_128-net, tenantry-t_192-net, tenantry-t_2-net and 1 more\./,
  })
  t.match(of([own, network('region-s', '10.9.0.0/25')]), { status: 'True' }, 'another region has other networks')
  t.end()
})

t.test('A region on one host has no such condition', (t) => {
  const single = {
    host: 'unix:///var/run/docker.sock',
    network_range: '10.9.0.0/20',
    images: { postgres: 'p', runtime: 'r' },
    control_url: 'http://10.9.0.1:4400',
    gateway: { container: 'given' },
  }
  t.equal(networkEncryption(single, 'region-r', { networks: [] }), undefined)
  t.equal(networkEncryption(undefined, 'region-r', { networks: [] }), undefined)
  t.end()
})

t.test('It is shown after the condition Ready, as long as the control plane leads', (t) => {
  const conditions = createRegionConditions(stoppedClock())
  t.equal(conditions.listed().get('r'), undefined)
  conditions.encrypted('r', { status: 'False', reason: 'PrivateLinkRequired', message: 'x' })
  t.equal(conditions.all().get('r'), undefined, 'it does not count as the first observation')
  t.equal(conditions.all().size, 0, 'nor for the metric of regions that are ready')
  conditions.ready('r')
  t.match(conditions.listed().get('r'), [
    { type: 'Ready', status: 'True' },
    { type: 'Encrypted', status: 'False', reason: 'PrivateLinkRequired' },
  ])
  t.match(conditions.all().get('r'), { type: 'Ready' })
  conditions.evict()
  t.equal(conditions.listed().get('r'), undefined)
  t.end()
})
