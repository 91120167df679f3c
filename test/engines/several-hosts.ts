// A cluster's specification for tests of several hosts.
import type { StackInput } from '#control-plane/stacks/stack-for.ts'

const size = { memoryBytes: 2 ** 29, cpuMillis: 500, pids: 256 }

export const clusterInput: StackInput = {
  id: 't_0123456789abcdef0123',
  isolation: 'cluster-per-tenant',
  running: true,
  hasHome: true,
  resources: { postgres: size, runtime: size },
  restarts: 0,
  isArchived: false,
  images: { postgres: 'sha256:aa', runtime: 'sha256:bb' },
  subnet: '10.1.1.0/26',
}

export const surroundings = {
  gateways: ['a', 'b', 'c'].map((host) => ({ container: `gateway-${host}`, host })),
  internalToken: 'x'.repeat(32),
  docker: {
    hosts: ['a', 'b', 'c'].map((id) => ({ id, host: `tcp://${id}:2376`, address: '192.0.2.1' })),
    network_range: '10.1.0.0/16',
    images: { postgres: 'p', runtime: 'r', gateway: 'g' },
    control_url: 'http://control-plane:4400',
    control_containers: [{ host: 'a', container: 'control-plane' }],
    gateway: { port: 8080, postgres_port: 5432 },
    clusters: { member_image: 'm', etcd_image: 'e' },
    egress: {},
    storage: {
      backend: 's3' as const,
      s3: {
        endpoint: 'https://s3.example.org',
        bucket: 'files',
        access_key_id: 'the-key',
        secret_access_key_file: '/nowhere',
      },
    },
  },
  cluster: {
    etcd: { authority: 'a', certificate: 'c', privateKey: 'k', seed: 's' },
    etcdContainers: ['a', 'b', 'c'].map((host) => ({ container: `etcd-${host}`, host })),
  },
}
