// Calls each method of the published storage clients, in both versions, as each kind of caller, with each policy of a
// bucket: the outcome follows the policies of the specification. This file also writes the table in docs/storage.md
// (TENANTRY_WRITE_DOCS=1).
import t from 'tap'
import { checkDocumented } from '#test/support/documented.ts'
import { startRuntime } from '#test/support/runtime.ts'
import { cases } from './support/client-cases.ts'
import { actors, content, path, policies, type Case, type Policy } from './support/client-outcomes.ts'
import { checkCalls, expected, fixture } from './support/check-calls.ts'
import { absentFeatures, methodsOfAbsentParts } from './support/absent-features.ts'
import { currentVersion, methodsOf, storageOf, versions } from './support/storage-clients.ts'

/** Methods that send no request: they build, configure or only compute. */
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

t.test('Storage clients', async (t) => {
  const runtime = await startRuntime(t)
  const tenant = await runtime.addTenant()

  t.test('Every method of the clients is covered by a case', async (t) => {
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
        `${version}: a case calls each method`,
      )
      if (version === currentVersion)
        t.same(
          [...called].filter((name) => !has.includes(name)),
          [],
          'and each method of a case exists',
        )
    }
  })

  for (const version of versions) {
    for (const policy of policies) {
      t.test(`${version}: each call to a ${policy} bucket has the outcome of the policies`, async (t) => {
        // The callers run concurrently, each with its own buckets.
        await Promise.all(
          actors.map((_, actor) =>
            checkCalls(t, tenant, version, policy, actor, `${policy}-${actor}-${version.replaceAll('.', '-')}`),
          ),
        )
      })
    }
  }

  t.test('Calls to absent features receive an error that names the feature', async (t) => {
    await fixture(tenant, 'public', 'plain')
    for (const version of versions) {
      const storage = storageOf(tenant, 'olga', version)
      for (const { name, what, call, since } of absentFeatures) {
        if (since !== undefined && version < since) continue
        const { error } = await call(storage, storage.from('plain'))
        t.match(error, { status: 400, message: `Storage does not support ${what}.` }, `${name}, ${version}`)
      }
    }
    t.equal(
      (await tenant.request('GET', `/storage/v1/object/plain/${path}`)).text,
      content,
      'and the call changed nothing',
    )
  })

  t.test('The table in the documentation matches the cases', async (t) => {
    await checkDocumented(t, 'storage.md', 'test/storage/client-matrix.test.ts', table())
  })

  t.same(runtime.errors, [], 'no internal error occurred')
})

/** Builds the table that the cases above have checked. */
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
  const absentRows = [...Map.groupBy(absentFeatures, ({ what }) => what)].map(([what, features]) => [
    `Storage does not support ${what}.`,
    features.map(({ name }) => name).join(', '),
  ])
  return (
    [head, head.map(() => '---'), ...rows].map(line).join('') +
    '\n' +
    [['message of the 400 `FeatureNotEnabled`', 'returned by'], ['---', '---'], ...absentRows].map(line).join('')
  )
}
