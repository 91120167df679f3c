// A model of docs/storage.md without concurrency: the response and the next state of each operation.

export type Policy = 'public' | 'private' | 'authenticated'
/** A user, the service role, or an anonymous caller. */
export type Caller = 'ada' | 'bob' | 'service' | undefined

export interface Location {
  bucket: string
  path: string
}

export type Operation = { caller: Caller } & (
  | { kind: 'create'; bucket: string; policy: Policy }
  | { kind: 'policy'; bucket: string; policy: Policy }
  | { kind: 'drop' | 'empty' | 'list'; bucket: string }
  | { kind: 'upload'; at: Location; content: string; upsert: boolean }
  | { kind: 'read'; at: Location }
  | { kind: 'remove'; at: Location }
  | { kind: 'remove many'; bucket: string; paths: string[] }
  | { kind: 'move' | 'copy'; at: Location; to: Location }
)

/** The result of an operation. `shown` contains the bytes that are read, or the paths that are listed or removed. */
export interface Outcome {
  status: number
  shown?: string
}

interface StoredFile {
  content: string
  owner: string | null
}

interface StoredBucket {
  owner: string | null
  policy: Policy
  files: ReadonlyMap<string, StoredFile>
}

export type State = ReadonlyMap<string, StoredBucket>

/** Returns a text that is equal for equal states. */
export function describe(state: State): string {
  const lines = [...state].flatMap(([name, { owner, policy, files }]) => [
    `${name} ${policy} of ${owner ?? 'no owner'}`,
    ...[...files].map(([path, file]) => `${name}/${path} = ${file.content} of ${file.owner ?? 'no owner'}`),
  ])
  return lines.sort().join('\n')
}

const ownerOf = (caller: Caller) => (caller === 'service' || caller === undefined ? null : caller)
const owns = (caller: Caller, { owner }: StoredBucket) =>
  caller === 'service' || (caller !== undefined && owner === caller)
const sees = (caller: Caller, bucket: StoredBucket) =>
  owns(caller, bucket) || bucket.policy === 'public' || (bucket.policy === 'authenticated' && caller !== undefined)
/** Returns whether the caller may add, change and remove a file of this owner in the bucket. */
const manages = (caller: Caller, bucket: StoredBucket, fileOwner: string | null) =>
  owns(caller, bucket) || (bucket.policy === 'authenticated' && caller !== undefined && fileOwner === caller)

/** Applies one operation alone. */
export function apply(state: State, operation: Operation): { state: State; outcome: Outcome } {
  const { caller } = operation
  const reject = (status: number) => ({ state, outcome: { status } })
  const done = (changes: Record<string, StoredBucket | undefined> = {}, shown?: string, status = 200) => {
    const after = new Map(state)
    for (const [name, bucket] of Object.entries(changes)) {
      if (bucket === undefined) after.delete(name)
      else after.set(name, bucket)
    }
    return { state: after, outcome: { status, ...(shown === undefined ? {} : { shown }) } }
  }
  if (caller === undefined && operation.kind !== 'read' && operation.kind !== 'list') return reject(401)

  if (operation.kind === 'create') {
    if (state.has(operation.bucket)) return reject(409)
    return done(
      { [operation.bucket]: { owner: ownerOf(caller), policy: operation.policy, files: new Map() } },
      undefined,
      201,
    )
  }
  const name = 'at' in operation ? operation.at.bucket : operation.bucket
  const bucket = state.get(name)
  if (bucket === undefined || !sees(caller, bucket)) return reject(404)
  const { files } = bucket
  const without = (paths: string[]) => ({
    ...bucket,
    files: new Map([...files].filter(([path]) => !paths.includes(path))),
  })

  switch (operation.kind) {
    case 'policy':
      return owns(caller, bucket) ? done({ [name]: { ...bucket, policy: operation.policy } }) : reject(403)
    case 'drop':
      return !owns(caller, bucket) ? reject(403) : files.size > 0 ? reject(409) : done({ [name]: undefined })
    case 'empty':
      return owns(caller, bucket) ? done({ [name]: without([...files.keys()]) }) : reject(403)
    case 'list':
      return done({}, [...files.keys()].sort().join())
    case 'remove many': {
      const gone = operation.paths.filter(
        (path) => manages(caller, bucket, files.get(path)?.owner ?? null) && files.has(path),
      )
      return done({ [name]: without(gone) }, gone.sort().join())
    }
    case 'upload': {
      const before = files.get(operation.at.path)
      if (!manages(caller, bucket, ownerOf(caller))) return reject(403)
      if (before !== undefined && !operation.upsert) return reject(409)
      if (before !== undefined && !manages(caller, bucket, before.owner)) return reject(403)
      return done({
        [name]: {
          ...bucket,
          files: new Map([
            ...files,
            [
              operation.at.path,
              { content: operation.content, owner: before === undefined ? ownerOf(caller) : before.owner },
            ],
          ]),
        },
      })
    }
  }
  const file = files.get(operation.at.path)
  if (file === undefined) return reject(404)
  if (operation.kind === 'read') return done({}, file.content)
  if (operation.kind === 'remove')
    return manages(caller, bucket, file.owner) ? done({ [name]: without([operation.at.path]) }) : reject(403)

  const target = state.get(operation.to.bucket)
  if (target === undefined || !sees(caller, target)) return reject(404)
  const { to, at, kind } = operation
  const owner = kind === 'move' ? file.owner : ownerOf(caller)
  if (kind === 'move' && !manages(caller, bucket, file.owner)) return reject(403)
  if (!manages(caller, target, owner)) return reject(403)
  const stays = kind === 'move' && to.bucket === at.bucket && to.path === at.path
  if (stays) return done()
  if (target.files.has(to.path)) return reject(409)
  const left = kind === 'move' ? without([at.path]) : bucket
  const into = to.bucket === name ? left : target
  return done({
    [name]: left,
    [to.bucket]: { ...into, files: new Map([...into.files, [to.path, { content: file.content, owner }]]) },
  })
}

/**
 * Returns the possible states after concurrent operations with these outcomes: the final state of every sequential
 * order that fits all outcomes. With several operations any 4xx status fits any other, because the check before a
 * change and the check within it may see different states.
 */
export function explain(
  states: readonly State[],
  operations: readonly { operation: Operation; outcome: Outcome }[],
): State[] {
  const exact = operations.length === 1
  const fits = (actual: Outcome, expected: Outcome) =>
    actual.status === expected.status
      ? actual.shown === expected.shown
      : !exact && actual.status >= 400 && actual.status < 500 && expected.status >= 400
  const found = new Map<string, State>()
  const follow = (state: State, left: typeof operations): void => {
    if (left.length === 0) found.set(describe(state), state)
    for (const next of left) {
      const rest = left.filter((other) => other !== next)
      const { operation } = next
      // A copy reads first and uploads later, and does not see what happens in between.
      const first: Operation =
        !exact && operation.kind === 'copy' ? { kind: 'read', caller: operation.caller, at: operation.at } : operation
      const { state: after, outcome } = apply(state, first)
      if (first !== operation && operation.kind === 'copy' && outcome.shown !== undefined) {
        follow(after, [
          ...rest,
          {
            operation: {
              kind: 'upload',
              caller: operation.caller,
              at: operation.to,
              content: outcome.shown,
              upsert: false,
            },
            outcome: next.outcome,
          },
        ])
      } else if (fits(next.outcome, outcome)) follow(after, rest)
    }
  }
  for (const state of states) follow(state, operations)
  return [...found.values()]
}
