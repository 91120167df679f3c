// Each method of the published storage clients, in both versions × who calls × the bucket's policy: what comes of it is
// what the policies of the specification say. The table in docs/storage.md is written from here (TENANTRY_WRITE_DOCS=1).
import t from 'tap'
import { checkDocumented } from '#test/support/documented.ts'
import { startRuntime } from '#test/support/runtime.ts'
import { cases } from './support/client-cases.ts'
import { actors, content, path, policies, type Case, type Policy } from './support/client-outcomes.ts'
import { checkCalls, expected, fixture } from './support/check-calls.ts'
import { absentFeatures, methodsOfAbsentParts } from './support/absent-features.ts'
import { currentVersion, methodsOf, storageOf, versions } from './support/storage-clients.ts'

/** Methods that are no calls: they build, set up or only compute. */
const plumbing = new Set([
  '_getFinalPath',
  '_removeEmptyFolders',
  'analytics',
  'applyTransformOptsToQuery',
  'bucketLifecycleUrl',
  'encodeMetadata',
  'from',
  'handleOperation',
  'index',
  'listBucketOptionsToQueryString',
  'prepareUploadFormData',
  'setHeader',
  'throwOnError',
  'toBase64',
  'uploadOrUpdate',
  'vectors',
])

t.test('storage clients', async (t) => {
  const runtime = await startRuntime(t)
  const tenant = await runtime.addTenant()

  t.test('have no method that is not covered here', async (t) => {
    for (const version of versions) {
      const storage = storageOf(tenant, 'service', version)
      const has = [
        ...methodsOf(storage),
        ...methodsOf(storage.from('x')).map((name) => `from.${name}`),
        ...methodsOfAbsentParts(storage),
      ]
      const called = new Set([...cases, ...absentFeatures].map(({ method }) => method))
      t.same(
        has.filter((name) => !called.has(name) && !plumbing.has(name.slice(name.lastIndexOf('.') + 1))),
        [],
        `${version}: each is called below`,
      )
      if (version === currentVersion)
        t.same(
          [...called].filter((name) => !has.includes(name)),
          [],
          'and each that is called is found',
        )
    }
  })

  for (const version of versions) {
    for (const policy of policies) {
      t.test(`${version}: what the policies say comes of each call to a ${policy} bucket`, async (t) => {
        // Callers at once, each with buckets of its own.
        await Promise.all(
          actors.map((_, actor) =>
            checkCalls(t, tenant, version, policy, actor, `${policy}-${actor}-${version.replaceAll('.', '-')}`),
          ),
        )
      })
    }
  }

  t.test('are told by name what there is none of', async (t) => {
    await fixture(tenant, 'public', 'plain')
    for (const version of versions) {
      const storage = storageOf(tenant, 'olga', version)
      for (const { name, what, call, since } of absentFeatures) {
        if (since !== undefined && version < since) continue
        const { error } = await call(storage, storage.from('plain'))
        t.match(error, { status: 400, message: `there are no ${what} here` }, `${name}, ${version}`)
      }
    }
    t.equal(
      (await tenant.request('GET', `/storage/v1/object/plain/${path}`)).text,
      content,
      'and nothing of it was done',
    )
  })

  t.test('find the table in the documentation as it is', async (t) => {
    await checkDocumented(t, 'storage.md', 'test/storage/client-matrix.test.ts', table())
  })

  t.same(runtime.problems, [], 'none of it was an error of ours')
})

/** As it has been checked above. */
function table(): string {
  const cell = (one: Case, policy: Policy, actor: number) =>
    [...new Set(versions.map((version) => expected(one, policy, actor, version)))].join(', ')
  const rows = cases.map((one) => [
    one.name,
    ...policies.flatMap((policy) => actors.map((_, actor) => cell(one, policy, actor))),
  ])
  const head = [
    'method',
    ...policies.flatMap((policy) =>
      ['owner', 'other', 'anon.', 'service'].map((caller, n) => (n === 0 ? `${policy}: ${caller}` : caller)),
    ),
  ]
  const line = (cells: readonly string[]) => `| ${cells.join(' | ')} |\n`
  const reported = [...Map.groupBy(absentFeatures, ({ what }) => what)].map(([what, features]) => [
    `there are no ${what} here`,
    features.map(({ name }) => name).join(', '),
  ])
  return (
    [head, head.map(() => '---'), ...rows].map(line).join('') +
    '\n' +
    [['400 `FeatureNotEnabled`', 'is told to'], ['---', '---'], ...reported].map(line).join('')
  )
}
