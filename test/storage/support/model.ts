// Storage as docs/storage.md tells it, in a hundred lines and without time: what each change answers, and what is there then.

export type Policy = 'public' | 'private' | 'authenticated'
/** A user, the service role, or nobody in particular. */
export type Who = 'ada' | 'bob' | 'service' | undefined

export interface Place {
  bucket: string
  path: string
}

export type Operation = { who: Who } & (
  | { kind: 'create'; bucket: string; policy: Policy }
  | { kind: 'policy'; bucket: string; policy: Policy }
  | { kind: 'drop' | 'empty' | 'list'; bucket: string }
  | { kind: 'upload'; at: Place; content: string; upsert: boolean }
  | { kind: 'read'; at: Place }
  | { kind: 'remove'; at: Place }
  | { kind: 'remove many'; bucket: string; paths: string[] }
  | { kind: 'move' | 'copy'; at: Place; to: Place }
)

/** `shown` are the bytes that are read, or the paths that are listed or removed. */
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

/** Two states are the same when this is. */
export function describe(state: State): string {
  const lines = [...state].flatMap(([name, { owner, policy, files }]) => [
    `${name} ${policy} of ${owner ?? 'nobody'}`,
    ...[...files].map(([path, file]) => `${name}/${path} = ${file.content} of ${file.owner ?? 'nobody'}`),
  ])
  return lines.sort().join('\n')
}

const ownerOf = (who: Who) => (who === 'service' || who === undefined ? null : who)
const owns = (who: Who, { owner }: StoredBucket) => who === 'service' || (who !== undefined && owner === who)
const sees = (who: Who, bucket: StoredBucket) =>
  owns(who, bucket) || bucket.policy === 'public' || (bucket.policy === 'authenticated' && who !== undefined)
/** May a file of this owner be put there, changed there, taken from there? */
const manages = (who: Who, bucket: StoredBucket, fileOwner: string | null) =>
  owns(who, bucket) || (bucket.policy === 'authenticated' && who !== undefined && fileOwner === who)

/** One operation alone. */
export function apply(state: State, operation: Operation): { state: State; outcome: Outcome } {
  const { who } = operation
  const refuse = (status: number) => ({ state, outcome: { status } })
  const done = (changes: Record<string, StoredBucket | undefined> = {}, shown?: string, status = 200) => {
    const after = new Map(state)
    for (const [name, bucket] of Object.entries(changes)) {
      if (bucket === undefined) after.delete(name)
      else after.set(name, bucket)
    }
    return { state: after, outcome: { status, ...(shown === undefined ? {} : { shown }) } }
  }
  if (who === undefined && operation.kind !== 'read' && operation.kind !== 'list') return refuse(401)

  if (operation.kind === 'create') {
    if (state.has(operation.bucket)) return refuse(409)
    return done(
      { [operation.bucket]: { owner: ownerOf(who), policy: operation.policy, files: new Map() } },
      undefined,
      201,
    )
  }
  const name = 'at' in operation ? operation.at.bucket : operation.bucket
  const bucket = state.get(name)
  if (bucket === undefined || !sees(who, bucket)) return refuse(404)
  const { files } = bucket
  const without = (paths: string[]) => ({
    ...bucket,
    files: new Map([...files].filter(([path]) => !paths.includes(path))),
  })

  switch (operation.kind) {
    case 'policy':
      return owns(who, bucket) ? done({ [name]: { ...bucket, policy: operation.policy } }) : refuse(403)
    case 'drop':
      return !owns(who, bucket) ? refuse(403) : files.size > 0 ? refuse(409) : done({ [name]: undefined })
    case 'empty':
      return owns(who, bucket) ? done({ [name]: without([...files.keys()]) }) : refuse(403)
    case 'list':
      return done({}, [...files.keys()].sort().join())
    case 'remove many': {
      const gone = operation.paths.filter(
        (path) => manages(who, bucket, files.get(path)?.owner ?? null) && files.has(path),
      )
      return done({ [name]: without(gone) }, gone.sort().join())
    }
    case 'upload': {
      const before = files.get(operation.at.path)
      if (!manages(who, bucket, ownerOf(who))) return refuse(403)
      if (before !== undefined && !operation.upsert) return refuse(409)
      if (before !== undefined && !manages(who, bucket, before.owner)) return refuse(403)
      return done({
        [name]: {
          ...bucket,
          files: new Map([
            ...files,
            [
              operation.at.path,
              { content: operation.content, owner: before === undefined ? ownerOf(who) : before.owner },
            ],
          ]),
        },
      })
    }
  }
  const file = files.get(operation.at.path)
  if (file === undefined) return refuse(404)
  if (operation.kind === 'read') return done({}, file.content)
  if (operation.kind === 'remove')
    return manages(who, bucket, file.owner) ? done({ [name]: without([operation.at.path]) }) : refuse(403)

  const target = state.get(operation.to.bucket)
  if (target === undefined || !sees(who, target)) return refuse(404)
  const { to, at, kind } = operation
  const owner = kind === 'move' ? file.owner : ownerOf(who)
  if (kind === 'move' && !manages(who, bucket, file.owner)) return refuse(403)
  if (!manages(who, target, owner)) return refuse(403)
  const stays = kind === 'move' && to.bucket === at.bucket && to.path === at.path
  if (stays) return done()
  if (target.files.has(to.path)) return refuse(409)
  const left = kind === 'move' ? without([at.path]) : bucket
  const into = to.bucket === name ? left : target
  return done({
    [name]: left,
    [to.bucket]: { ...into, files: new Map([...into.files, [to.path, { content: file.content, owner }]]) },
  })
}

/**
 * The states that operations which ran at once may have left, given what each answered: those of every order, one after
 * the other, in which the answers fit. Of several at once any refusal will do for a refusal: what is checked before a change
 * and what is checked with it may see two of the states between.
 */
export function explain(
  states: readonly State[],
  operations: readonly { operation: Operation; outcome: Outcome }[],
): State[] {
  const exact = operations.length === 1
  const fits = (told: Outcome, wanted: Outcome) =>
    told.status === wanted.status
      ? told.shown === wanted.shown
      : !exact && told.status >= 400 && told.status < 500 && wanted.status >= 400
  const found = new Map<string, State>()
  const follow = (state: State, left: typeof operations): void => {
    if (left.length === 0) found.set(describe(state), state)
    for (const next of left) {
      const rest = left.filter((other) => other !== next)
      const { operation } = next
      // A copy reads first and uploads later: of what happens in between it sees nothing.
      const first: Operation =
        !exact && operation.kind === 'copy' ? { kind: 'read', who: operation.who, at: operation.at } : operation
      const { state: after, outcome } = apply(state, first)
      if (first !== operation && operation.kind === 'copy' && outcome.shown !== undefined) {
        follow(after, [
          ...rest,
          {
            operation: { kind: 'upload', who: operation.who, at: operation.to, content: outcome.shown, upsert: false },
            outcome: next.outcome,
          },
        ])
      } else if (fits(next.outcome, outcome)) follow(after, rest)
    }
  }
  for (const state of states) follow(state, operations)
  return [...found.values()]
}
