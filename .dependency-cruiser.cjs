// Imports run one way: the parts know the contract, never each other (docs/architecture.md).
const part = (name, allowed) => ({
  name: `${name}-imports`,
  comment: `${name} may import ${allowed.join(', ') || 'nothing of ours'}`,
  severity: 'error',
  from: { path: `^${name}/` },
  to: { path: '^(contract|control-plane|gateway|tenant-runtime|test|bench|examples|scripts|prisma)/', pathNot: `^(${[name, ...allowed].join('|')})/` },
})

module.exports = {
  forbidden: [
    part('contract', []),
    part('control-plane', ['contract', 'prisma']),
    part('gateway', ['contract']),
    part('tenant-runtime', ['contract']),
    {
      name: 'prisma-only-in-persistence',
      severity: 'error',
      from: { path: '^(control-plane|gateway|tenant-runtime|contract)/', pathNot: '^control-plane/src/persistence/' },
      to: { path: '^prisma/client|node_modules/@?prisma' },
    },
    {
      name: 'pure-stays-pure',
      comment: 'Plans, stacks, policies and SQL are computed without touching the world',
      severity: 'error',
      from: { path: '^(control-plane/src/stacks/|control-plane/src/billing/(billing-config|compose|corrections|line|money|months|plan-share|price-list|rating|resources|read-export|totals|verify)\\.ts|tenant-runtime/src/rest/(request|plan|sql)/)' },
      to: { path: '^(node:(fs|net|http|https|child_process|dgram|tls|worker_threads)|fs|net|http|child_process)|node_modules/(pg|undici|fastify)/' },
    },
    { name: 'no-cycles', severity: 'error', from: {}, to: { circular: true, viaOnly: { dependencyTypesNot: ['type-only'] } } },
    { name: 'no-orphans-of-resolution', severity: 'error', from: {}, to: { couldNotResolve: true } },
  ],
  options: {
    doNotFollow: { path: 'node_modules|^prisma/client' },
    exclude: { path: '^examples/functions/.*\\.as\\.ts$' },
    tsPreCompilationDeps: true,
    tsConfig: { fileName: 'tsconfig.json' },
    enhancedResolveOptions: { exportsFields: ['exports'], conditionNames: ['import', 'node', 'default'], extensions: ['.ts', '.js', '.mjs', '.cjs'] },
  },
}
