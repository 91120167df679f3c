// Random histories of users who act concurrently in two buckets, compared with a small model: all responses and the
// final state must fit one sequential order.
import fc from 'fast-check'
import t from 'tap'
import { chanceOf } from '#test/simulation/chance.ts'
import { effort, seed } from '#test/support/effort.ts'
import { startRuntime, type ApiResponse, type TestTenant } from '#test/support/runtime.ts'
import { describe, explain, type Operation, type Outcome, type Policy, type State } from './support/model.ts'

const buckets = ['left', 'right'] as const
const paths = ['x', 'f/y'] as const
const objects = '/storage/v1/object'

const bucket = fc.constantFrom(...buckets)
const location = fc.record({ bucket, path: fc.constantFrom(...paths) })
const caller = fc.oneof(
  { weight: 5, arbitrary: fc.constantFrom('ada' as const, 'bob' as const) },
  { weight: 2, arbitrary: fc.constant('service' as const) },
  { weight: 1, arbitrary: fc.constant(undefined) },
)
const policy = fc.constantFrom<Policy>('authenticated', 'public', 'private')
const operation: fc.Arbitrary<Operation> = fc.oneof(
  { weight: 3, arbitrary: fc.record({ caller, kind: fc.constant('create' as const), bucket, policy }) },
  { weight: 1, arbitrary: fc.record({ caller, kind: fc.constant('policy' as const), bucket, policy }) },
  {
    weight: 2,
    arbitrary: fc.record({
      caller,
      kind: fc.constantFrom('drop' as const, 'empty' as const, 'list' as const),
      bucket,
    }),
  },
  {
    weight: 5,
    arbitrary: fc.record({
      caller,
      kind: fc.constant('upload' as const),
      at: location,
      content: fc.string({ minLength: 1, maxLength: 3, unit: fc.constantFrom('a', 'b', 'c', 'd') }),
      upsert: fc.boolean(),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({ caller, kind: fc.constantFrom('read' as const, 'remove' as const), at: location }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      caller,
      kind: fc.constant('remove many' as const),
      bucket,
      paths: fc.uniqueArray(fc.constantFrom(...paths), { minLength: 1 }),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      caller,
      kind: fc.constantFrom('move' as const, 'copy' as const),
      at: location,
      to: location,
    }),
  },
)
/** Two or three callers with all rights act on the same path. */
const duel: fc.Arbitrary<Operation[]> = location.chain((at) => {
  const caller = fc.constantFrom('ada' as const, 'service' as const)
  const move = fc.record({
    caller,
    kind: fc.constantFrom('move' as const, 'copy' as const),
    at: fc.constant(at),
    to: location,
  })
  const remove = fc.record({ caller, kind: fc.constant('remove' as const), at: fc.constant(at) })
  const upload = fc.record({
    caller,
    kind: fc.constant('upload' as const),
    at: fc.constant(at),
    content: fc.constantFrom('e', 'f'),
    upsert: fc.boolean(),
  })
  const ofAll = fc.record({
    caller,
    kind: fc.constantFrom('drop' as const, 'empty' as const),
    bucket: fc.constant(at.bucket),
  })
  return fc.array(fc.oneof({ weight: 3, arbitrary: move }, { weight: 2, arbitrary: remove }, upload, ofAll), {
    minLength: 2,
    maxLength: 3,
  })
})
/** Both buckets exist at first, with a file each; then up to three callers act at once, several times. */
const history = fc.record({
  policies: fc.tuple(policy, policy),
  rounds: fc.array(fc.oneof(fc.array(operation, { minLength: 1, maxLength: 3 }), duel), { minLength: 1, maxLength: 6 }),
})

async function perform(tenant: TestTenant, suffix: string, operation: Operation): Promise<Outcome> {
  const named = (name: string) => `${name}-${suffix}`
  const request = (method: string, path: string, body?: object | string, headers = {}) =>
    tenant.request(method, path, { as: operation.caller, ...(body === undefined ? {} : { body }), headers })
  const plain = ({ status }: ApiResponse): Outcome => ({ status })
  const shown = (response: ApiResponse, of: () => string): Outcome =>
    response.status === 200 ? { status: 200, shown: of() } : plain(response)
  switch (operation.kind) {
    case 'create':
      return plain(
        await request('POST', '/storage/v1/bucket', { name: named(operation.bucket), policy: operation.policy }),
      )
    case 'policy':
      return plain(
        await request('PATCH', `/storage/v1/bucket/${named(operation.bucket)}`, { policy: operation.policy }),
      )
    case 'drop':
      return plain(await request('DELETE', `/storage/v1/bucket/${named(operation.bucket)}`))
    case 'empty':
      return plain(await request('POST', `/storage/v1/bucket/${named(operation.bucket)}/empty`))
    case 'list': {
      const response = await request('POST', `${objects}/list-v2/${named(operation.bucket)}`, {})
      return shown(response, () =>
        (response.json()['objects'] as { key: string }[])
          .map(({ key }) => key)
          .sort()
          .join(),
      )
    }
    case 'remove many': {
      const response = await request('DELETE', `${objects}/${named(operation.bucket)}`, { prefixes: operation.paths })
      return shown(response, () =>
        response
          .list()
          .map(({ name }) => String(name))
          .sort()
          .join(),
      )
    }
    case 'upload': {
      const headers = { 'content-type': 'text/plain', 'x-upsert': String(operation.upsert) }
      return plain(
        await request(
          'POST',
          `${objects}/${named(operation.at.bucket)}/${operation.at.path}`,
          operation.content,
          headers,
        ),
      )
    }
    case 'read': {
      const response = await request('GET', `${objects}/${named(operation.at.bucket)}/${operation.at.path}`)
      return shown(response, () => response.text)
    }
    case 'remove':
      return plain(await request('DELETE', `${objects}/${named(operation.at.bucket)}/${operation.at.path}`))
    case 'move':
    case 'copy': {
      const { at, to } = operation
      const body = {
        bucketId: named(at.bucket),
        sourceKey: at.path,
        destinationBucket: named(to.bucket),
        destinationKey: to.path,
      }
      return plain(await request('POST', `${objects}/${operation.kind}`, body))
    }
  }
}

/** Returns the whole state in the form of the model. The service role reads the bytes. */
async function observe(tenant: TestTenant, suffix: string): Promise<string> {
  const rows = await tenant.rows(
    `select b.name, b.policy, b.owner_id as bucket_owner, o.path, o.owner_id as file_owner
     from storage_buckets b left join storage_objects o on o.bucket_id = b.id where b.name = any ($1)`,
    [buckets.map((name) => `${name}-${suffix}`)],
  )
  const state = new Map<
    string,
    { owner: string | null; policy: Policy; files: Map<string, { content: string; owner: string | null }> }
  >()
  await Promise.all(
    rows.map(async (row) => {
      const name = String(row['name']).slice(0, -suffix.length - 1)
      const bucket = state.get(name) ?? {
        owner: row['bucket_owner'] as string | null,
        policy: row['policy'] as Policy,
        files: new Map(),
      }
      state.set(name, bucket)
      const path = row['path'] as string | null
      if (path === null) return
      const { text } = await tenant.request('GET', `${objects}/${String(row['name'])}/${path}`, { as: 'service' })
      bucket.files.set(path, { content: text, owner: row['file_owner'] as string | null })
    }),
  )
  return describe(state)
}

t.test('Concurrent operations have the outcome of some sequential order', { timeout: 7_200_000 }, async (t) => {
  const chance = chanceOf(seed)
  const runtime = await startRuntime(t, {
    abandonedMilliseconds: 0,
    // A caller between two steps of a change waits for a moment here, so that others overtake it.
    failpoint: () =>
      chance.happens(0.5) ? new Promise((resolve) => setTimeout(resolve, chance.below(12))) : undefined,
  })
  const tenant = await runtime.addTenant()
  let [ran, operations, together] = [0, 0, 0]

  const run = async ({ policies, rounds }: { policies: Policy[]; rounds: Operation[][] }) => {
    const suffix = `h${ran++}`
    const made = buckets.flatMap((bucket, at): Operation[][] => [
      [{ caller: 'ada', kind: 'create', bucket, policy: policies[at] ?? 'private' }],
      [{ caller: 'ada', kind: 'upload', at: { bucket, path: 'x' }, content: bucket, upsert: true }],
    ])
    let states: State[] = [new Map()]
    for (const round of [...made, ...rounds]) {
      const done = await Promise.all(
        round.map(async (operation) => ({ operation, outcome: await perform(tenant, suffix, operation) })),
      )
      operations += round.length
      if (round.length > 1) together++
      const seen = await observe(tenant, suffix)
      const possible = explain(states, done)
      const before = states
      states = possible.filter((state) => describe(state) === seen)
      if (states.length > 0) continue
      const lines = done.map(({ operation, outcome }) => `${JSON.stringify(operation)} → ${JSON.stringify(outcome)}`)
      throw new Error(
        [
          'state before:',
          ...before.map(describe),
          'concurrent operations:',
          ...lines,
          'state after:',
          seen,
          `orders that fit the responses: ${possible.length}`,
        ].join('\n'),
      )
    }
  }
  await fc.assert(fc.asyncProperty(history, run), { seed, numRuns: effort({ small: 40, full: 2_000 }) })

  await runtime.storage.idle()
  for (let times = 0; times < 2; times++)
    t.match((await tenant.request('POST', '/storage/v1/admin/sweep', { as: 'service' })).json(), {
      orphans: 0,
      phantoms: 0,
      refused: null,
    })
  const [counters] = await tenant.rows(
    `select reserved_bytes::int as reserved, (select count(*) from blob_gc)::int as collectable,
      file_count::int - (select count(*) from storage_objects)::int as count_off,
      file_bytes::int - (select coalesce(sum(size), 0) from storage_objects)::int as bytes_off from storage_usage`,
  )
  t.same(counters, { reserved: 0, collectable: 0, count_off: 0, bytes_off: 0 })
  t.same(runtime.errors, [])
  t.comment(`${ran} histories, ${operations} operations, ${together} concurrent groups, seed ${seed}`)
})
