// Rules of imports: the parts import the contract, never each other (docs/architecture.md).
const parts = [
  'cli',
  'client',
  'console',
  'contract',
  'control-plane',
  'docker-proxy',
  'gateway',
  'local',
  'tenant-runtime',
]

const part = (name, ...allowed) => ({
  name: `${name}-imports`,
  comment: `${name} may import ${allowed.join(', ') || 'no other part'}`,
  severity: 'error',
  from: { path: `^${name}/` },
  to: {
    path: `^(${[...parts, 'test', 'bench', 'examples', 'scripts', 'prisma'].join('|')})/`,
    pathNot: [`^${name}/`, ...allowed.map((path) => `^${path}`)],
  },
})

/** The control plane's folders in layers. Each may import those of earlier lines (docs/architecture.md). */
const layers = [
  ['x509'],
  ['platform', 'stacks'],
  ['engines', 'regions'],
  ['homes', 'http'],
  ['audit', 'blocked-addresses', 'certificates', 'keys', 'webhooks'],
  ['clusters', 'console', 'console-sessions', 'deployment', 'placement', 'quotas'],
  ['plans'],
  ['tenants'],
  ['logs', 'reconcile'],
  [
    'backups',
    'disk',
    'health',
    'internal-token',
    'master-key',
    'pause',
    'rollouts',
    'sessions',
    'superuser-passwords',
    'warm-pool',
  ],
  ['drift', 'fleet', 'hosts', 'moves', 'rebalance', 'usage'],
  ['billing', 'watch'],
  ['spending'],
]
/** Folders whose files all others may import. Of any other folder, they may import `index.ts` only. */
const shared = ['platform', 'http']
const folders = (names) => `^control-plane/src/(${names.join('|')})/`

/** Files of billing without side effects. */
const pureBilling = [
  'billing-config',
  'compose',
  'corrections',
  'line',
  'money',
  'plan-share',
  'price-list',
  'rating',
  'resources',
  'read-export',
  'totals',
  'verify',
]
const pure = [
  'control-plane/src/stacks/',
  'control-plane/src/platform/months\\.ts',
  'control-plane/src/rebalance/(plan-moves|plan-host-moves|rebalance)\\.ts',
  `control-plane/src/billing/(${pureBilling.join('|')})\\.ts`,
  'gateway/src/forward/(forwarded-response|request-account|response-state)\\.ts',
  'tenant-runtime/src/rest/(request|plan|sql)/',
]

const downward = layers.map((layer, at) => ({
  name: `no-upward-import-of-${layer.join('-')}`,
  comment: 'A folder imports only folders of lower layers',
  severity: 'error',
  from: { path: `^control-plane/src/(${layer.join('|')})/` },
  to: { path: ['^control-plane/src/[^/]+\\.ts$', folders(layers.slice(at).flat())], pathNot: '^control-plane/src/$1/' },
}))

module.exports = {
  forbidden: [
    part('cli', 'client/'),
    part('client'),
    // The console uses only the public API.
    part('console', 'client/'),
    part('contract'),
    part('control-plane', 'contract/', 'prisma/'),
    // It checks that a container's specification is what the control plane's engine produces.
    part('docker-proxy', 'contract/', 'control-plane/src/(engines|stacks)/index\\.ts$'),
    part('gateway', 'contract/'),
    // It closes the databases before clients can connect, and runs tenants' own services as the control plane describes them.
    part(
      'local',
      'contract/',
      'control-plane/src/platform/(closed-databases|identifiers|migrations|single-connection|superuser-url)\\.ts$',
      'control-plane/src/(engines|stacks)/index\\.ts$',
    ),
    part('tenant-runtime', 'contract/'),
    ...downward,
    {
      name: 'every-folder-has-its-layer',
      severity: 'error',
      from: {},
      to: { path: '^control-plane/src/[^/]+/', pathNot: folders(layers.flat()) },
    },
    {
      name: 'features-by-their-index',
      comment: "Only a folder's index.ts is public",
      severity: 'error',
      from: { path: '^control-plane/src/([^/]+)' },
      to: { path: folders(layers.flat()), pathNot: ['^control-plane/src/$1/', folders(shared), '/index\\.ts$'] },
    },
    {
      name: 'prisma-only-in-stores',
      severity: 'error',
      from: { path: `^(${parts.join('|')})/`, pathNot: ['^control-plane/src/platform/', '/store[a-z-]*\\.ts$'] },
      to: { path: '^prisma/client|node_modules/@?prisma' },
    },
    {
      name: 'pure-stays-pure',
      comment: 'Plans, stacks, policies and SQL are computed without side effects',
      severity: 'error',
      from: {
        path: `^(${pure.join('|')})`,
      },
      to: {
        path: [
          '^(node:(fs|net|http|https|child_process|dgram|tls|worker_threads)|fs|net|http|child_process)',
          'node_modules/(pg|undici|fastify)/',
        ],
      },
    },
    { name: 'no-cycles', severity: 'error', from: {}, to: { circular: true } },
    { name: 'no-orphans-of-resolution', severity: 'error', from: {}, to: { couldNotResolve: true } },
  ],
  options: {
    doNotFollow: { path: 'node_modules|^prisma/client' },
    exclude: { path: '^examples/functions/.*\\.as\\.ts$|^console/built/' },
    tsPreCompilationDeps: true,
    tsConfig: { fileName: 'tsconfig.json' },
    enhancedResolveOptions: {
      exportsFields: ['exports'],
      conditionNames: ['import', 'node', 'default'],
      extensions: ['.ts', '.tsx', '.js', '.mjs', '.cjs'],
    },
  },
}
