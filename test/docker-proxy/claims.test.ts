// Which containers, networks, volumes and images a call may name: those that are ours according to the Engine.
import t from 'tap'
import { checkClaim } from '#docker-proxy/claims.ts'
import { installation, rejected, rules, stack, volume } from './support/calls.ts'

t.test('A call may use only resources that are ours according to the Engine', async (t) => {
  const Labels = { 'tenantry.installation': installation, 'tenantry.stack': stack }
  const theirs = { 'tenantry.installation': 'another', 'tenantry.stack': stack }
  const account = (name: string, labels: object | null, status = 'running') => ({
    Id: 'x',
    Name: `/${name}`,
    Config: { Labels: labels },
    State: { Status: status },
    Labels: labels,
  })
  const mine = account('tenantry-a', Labels)
  const made = account('tenantry-a-files', Labels, 'created')
  const passes: [Parameters<typeof checkClaim>[0], object][] = [
    [{ kind: 'container', name: 'a', may: 'be used' }, mine],
    [{ kind: 'container', name: 'a', may: 'start' }, mine],
    [{ kind: 'container', name: 'a', may: 'be attached' }, mine],
    [{ kind: 'container', name: 'a', may: 'be attached' }, account('tenantry-gateway', {})],
    [{ kind: 'container', name: 'a', may: 'hold files' }, made],
    [{ kind: 'network', name: 'a' }, mine],
    [{ kind: 'volume', name: 'a' }, mine],
    [{ kind: 'volume', name: 'a', may: 'be removed' }, mine],
    ...[null, {}].map((Labels): [Parameters<typeof checkClaim>[0], object] => [
      { kind: 'volume', name: 'a', may: 'be removed' },
      { Name: volume.Name, Driver: 'local', Options: null, Labels },
    ]),
    [
      { kind: 'image', name: 'a' },
      { RepoTags: ['other/x:1', 'tenantry/postgres:1f'], RepoDigests: [] },
    ],
    [
      { kind: 'image', name: 'a' },
      { RepoTags: [], RepoDigests: [`tenantry/gateway@sha256:${'0'.repeat(64)}`] },
    ],
  ]
  for (const [claim, of] of passes)
    t.doesNotThrow(() => checkClaim(claim, of as Record<string, unknown>, rules), JSON.stringify([claim, of]))
  const rejectedClaims: [Parameters<typeof checkClaim>[0], object][] = [
    ...[account('a', {}), account('a', null), account('a', theirs), {}].flatMap(
      (of): [Parameters<typeof checkClaim>[0], object][] => [
        [{ kind: 'container', name: 'a', may: 'be used' }, of],
        [{ kind: 'container', name: 'a', may: 'start' }, of],
        [{ kind: 'container', name: 'a', may: 'be attached' }, of],
        [{ kind: 'container', name: 'a', may: 'hold files' }, of],
        [{ kind: 'network', name: 'a' }, of],
        [{ kind: 'volume', name: 'a' }, of],
        [{ kind: 'volume', name: 'a', may: 'be removed' }, of],
      ],
    ),
    [
      { kind: 'volume', name: 'a' },
      { Name: volume.Name, Driver: 'local', Options: null, Labels: null },
    ],
    ...[
      { Name: 'database' },
      { Name: `x${volume.Name}` },
      { Name: 'tenantry-gateway' },
      { Labels: theirs },
      { Labels: { owner: 'x' } },
      { Driver: 'nfs' },
      { Options: { device: '/etc', o: 'bind', type: 'none' } },
    ].map((change): [Parameters<typeof checkClaim>[0], object] => [
      { kind: 'volume', name: 'a', may: 'be removed' },
      { Name: volume.Name, Driver: 'local', Options: null, Labels: null, ...change },
    ]),
    [{ kind: 'container', name: 'a', may: 'be used' }, account('tenantry-gateway', {})],
    [{ kind: 'container', name: 'a', may: 'start' }, account('tenantry-control-plane', {})],
    [{ kind: 'container', name: 'a', may: 'start' }, made],
    [{ kind: 'container', name: 'a', may: 'hold files' }, mine],
    [{ kind: 'container', name: 'a', may: 'hold files' }, account('tenantry-a-files', Labels, 'running')],
    [
      { kind: 'image', name: 'a' },
      { RepoTags: ['alpine:latest'], RepoDigests: [] },
    ],
    [
      { kind: 'image', name: 'a' },
      {
        RepoTags: ['evil/tenantry/postgres:latest', 'tenantry/postgres-x:1', 'registry:5000/tenantry/postgres:1'],
        RepoDigests: null,
      },
    ],
    [
      { kind: 'image', name: 'a' },
      { RepoTags: null, RepoDigests: null, Config: { Labels } },
    ],
  ]
  for (const [claim, of] of rejectedClaims)
    t.throws(() => checkClaim(claim, of as Record<string, unknown>, rules), rejected, JSON.stringify([claim, of]))
})
