// The network of a region whose hosts encrypt their traffic: what the Docker Engine receives, and what is observed.
import type Dockerode from 'dockerode'
import t from 'tap'
import { createNetwork } from '#control-plane/engines/docker/networks.ts'
import { observedNetwork } from '#control-plane/engines/docker/observed.ts'
import type { EngineApi } from '#control-plane/engines/docker/engine-api.ts'

const labels = { installation: 'test', stack: 't_0' }
const spec = { name: 'n', labels, subnet: '10.160.0.0/26', internal: true, hostAddress: false, spansHosts: true }
const { signal } = new AbortController()

/** Creates a network. @returns the body of the call to the Engine */
async function createdBody(given: Parameters<typeof createNetwork>[1]): Promise<unknown> {
  const bodies: unknown[] = []
  const api = {
    request: ({ method, body }: { method: string; body?: unknown }) => {
      if (method === 'POST') bodies.push(body)
      return Promise.resolve(method === 'POST' ? { Id: 'x' } : [])
    },
  }
  await createNetwork(api as unknown as EngineApi, given, signal).catch(() => undefined)
  t.equal(bodies.length, 1)
  return bodies[0]
}

t.test('Only a network that should be encrypted has the option, which has no value', async (t) => {
  t.match(await createdBody({ ...spec, isEncrypted: true }), { Driver: 'overlay', Options: { encrypted: '' } })
  t.match(await createdBody(spec), { Driver: 'overlay', Options: {} })
  t.notOk('encrypted' in ((await createdBody(spec)) as { Options: object }).Options)
})

t.test('A network is observed as encrypted if the Engine has created it with the option', (t) => {
  const found = (options: Record<string, string> | null) =>
    observedNetwork(
      {
        Id: 'x',
        Name: 'n',
        Internal: true,
        IPAM: { Config: [{ Subnet: '10.160.0.0/26' }] },
        Labels: { 'tenantry.installation': 'test', 'tenantry.stack': 't_0' },
        Options: options,
      } as unknown as Dockerode.NetworkInspectInfo,
      new Map(),
    )
  const vxlan = { 'com.docker.network.driver.overlay.vxlanid_list': '4097' }
  t.equal(found({ ...vxlan, encrypted: '' })?.isEncrypted, true)
  t.equal(found(vxlan)?.isEncrypted, undefined)
  t.equal(found(null)?.isEncrypted, undefined)
  t.end()
})
