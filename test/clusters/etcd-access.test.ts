// The commands that the control plane runs in a region's etcd: each in the first member that accepts it, and a replacement in another one
// than the replaced.
import t from 'tap'
import { etcdAccess } from '#control-plane/clusters/etcd-access.ts'

const etcd = { authority: 'authority', certificate: 'certificate', privateKey: 'key', seed: 'seed' }

/** @param healthy names of the members that accept commands @param failure exit code of the others @param stdout response of the former */
function startAccess(healthy: readonly string[], failure = 1, stdout = '') {
  const calls: string[] = []
  const exec = (stack: string, service: string, [, ...command]: readonly string[]) => {
    calls.push(`${stack} ${service}: ${command.join(' ')}`)
    return Promise.resolve({
      code: healthy.includes(service) ? 0 : failure,
      stdout,
      stderr: 'etcd-access: no quorum',
    })
  }
  const access = etcdAccess({ engine: { exec }, regionStackId: 'region-r', etcd, spansHosts: false })
  return { access, calls, signal: new AbortController().signal }
}

t.test('A member is replaced by a command in another one', async (t) => {
  const { access, calls, signal } = startAccess(['etcd-1', 'etcd-3'])
  await access.replace('etcd-1', ['etcd-2', 'etcd-3'], signal)
  t.same(calls, ['region-r etcd-2: replace etcd-1', 'region-r etcd-3: replace etcd-1'])
})

t.test('No member is replaced without a quorum of the others', async (t) => {
  const { access, calls, signal } = startAccess(['etcd-2'])
  await t.rejects(access.replace('etcd-2', ['etcd-1', 'etcd-3'], signal), { code: 'UNHEALTHY' })
  t.same(calls, ['region-r etcd-1: replace etcd-2', 'region-r etcd-3: replace etcd-2'])
})

t.test('A replacement in an etcd that has not begun is reported as such', async (t) => {
  const { access, signal } = startAccess([], 3)
  for (const others of [['etcd-1', 'etcd-3'], []])
    await t.rejects(access.replace('etcd-2', others, signal), { code: 'NOT_FOUND' })
})

t.test('Other commands run in the first member that accepts them', async (t) => {
  const { access, calls, signal } = startAccess(['etcd-2', 'etcd-3'])
  await access.remove('t_00000000000000000001', signal)
  t.same(
    calls,
    ['etcd-1', 'etcd-2'].map((member) => `region-r ${member}: remove t_00000000000000000001`),
  )
})

t.test('A database that a member creates is not one that exists', async (t) => {
  for (const [response, origin] of [
    ['no', 'none'],
    ['creating', 'creating'],
    ['yes', 'created'],
    ['adopted', 'adopted'],
  ] as const) {
    const { access, signal } = startAccess(['etcd-1'], 1, `${response}\n`)
    t.equal(await access.origin('t_00000000000000000001', signal), origin)
  }
})
