// The operator's file of regions: an invalid one is rejected at the start, with the path and the reason.
import t from 'tap'
import { readRegions } from '#control-plane/regions/region-config.ts'

const masterKey = Buffer.alloc(32, 3)
const docker = {
  host: 'unix:///var/run/docker.sock',
  network_range: '10.9.0.0/20',
  images: { postgres: 'p', runtime: 'r', gateway: 'g' },
  control_url: 'http://10.9.0.1:4400',
  gateway: { host_address: '10.99.0.2', port: 4401, postgres_port: 4403 },
}
const region = (id: string, changes: object = {}) => ({
  id,
  engine: 'docker',
  domain: 'example.org',
  gateway_url: 'https://example.org',
  docker: { ...docker, ...changes },
})
const read = (...regions: object[]) => readRegions(JSON.stringify(regions), masterKey)

t.test('A region on another host has the same fixed addresses of its range as a local one', async (t) => {
  for (const host of ['unix:///var/run/docker.sock', 'tcp://10.99.0.2:2376', 'ssh://tenantry@10.99.0.2']) {
    t.match(
      read(region('north', { host })),
      [
        {
          gateway_internal_urls: ['http://10.9.0.11:4402'],
          runtime_urls: ['http://10.9.0.20:24401'],
          database_host: '10.99.0.2:4403',
        },
      ],
      host,
    )
  }
})

t.test('Clusters need both images', async (t) => {
  const clusters = { member_image: 'tenantry/cluster-member:latest', etcd_image: 'tenantry/etcd:latest' }
  t.match(read(region('north', { clusters })), [{ docker: { clusters } }])
  for (const wrong of [{}, { member_image: 'm' }, { ...clusters, etcd_image: '' }, { ...clusters, members: 5 }, true])
    t.throws(
      () => read(region('north', { clusters: wrong })),
      /^TENANTRY_REGIONS_FILE\/0\/docker\/clusters/,
      JSON.stringify(wrong),
    )
})

t.test(
  "On another host, containers reach the control plane at the host's address on their network, or in a container there",
  async (t) => {
    for (const host of ['tcp://10.99.0.2:2376', 'ssh://tenantry@10.99.0.2']) {
      for (const control_url of [
        'http://10.99.0.1:4400',
        'http://127.0.0.1:4400',
        'http://10.9.0.2:4400',
        'https://control.example.org',
        'http://10.9.0.1.example.org',
      ]) {
        t.throws(
          () => read(region('north', { host, control_url })),
          /^TENANTRY_REGIONS_FILE\/0\/docker\/control_url: the engine is on another host, .* only at http:\/\/10\.9\.0\.1:PORT/,
          control_url,
        )
      }
      t.equal(
        read(
          region('north', { host, control_url: 'http://control-plane:4400', control_container: 'the-control-plane' }),
        ).length,
        1,
      )
    }
  },
)

t.test('The proxies in front of a region are named by their IPv4 addresses', async (t) => {
  const behind = (...trusted_proxies: string[]) =>
    read(region('north', { gateway: { ...docker.gateway, trusted_proxies } }))
  t.equal(behind('10.99.0.3', '192.0.2.255').length, 1)
  for (const wrong of ['proxy', '10.99.0.256', '10.99.0.0/24', '2001:db8::1', '10.99.0.3,', '10.99.0'])
    t.throws(() => behind(wrong), /^TENANTRY_REGIONS_FILE/, wrong)
  t.throws(() => behind(), /^TENANTRY_REGIONS_FILE/, 'none')
})

t.test('Two regions must not share addresses', async (t) => {
  const together = /the regions "north" and "south" have a network_range in common/
  for (const network_range of ['10.9.0.0/20', '10.9.8.0/23', '10.8.0.0/15'])
    t.throws(
      () => read(region('north'), region('south', { network_range, control_url: 'http://10.9.0.1:4400' })),
      together,
      network_range,
    )
  for (const network_range of ['10.9.16.0/20', '10.8.240.0/20', '10.10.0.0/16'])
    t.equal(read(region('north'), region('south', { network_range })).length, 2, network_range)
  t.throws(() => read(region('north'), region('north', { network_range: '10.10.0.0/16' })), /names a region twice/)
})
