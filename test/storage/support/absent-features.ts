// Calls of the storage clients to features that storage does not have, and the error that each receives.
import { methodsOf, type Files, type Reply, type Storage } from './storage-clients.ts'

export interface AbsentFeature {
  /** The name in the table of docs/storage.md. */
  name: string
  method: string
  /** The feature's name in `Storage does not support ….`. */
  what: string
  /** The first version whose clients have the method. */
  since?: string
  call(storage: Storage, files: Files): Promise<{ error: unknown }>
}

async function invoke(target: object, method: string, ...args: unknown[]): Promise<Reply> {
  const found: unknown = Reflect.get(target, method)
  if (typeof found !== 'function') throw new Error(`there is no ${method}`)
  return (await Reflect.apply(found, target, args)) as Reply
}

/** Sends a plain GET and returns its error in the form of a client's reply. */
async function fetched(url: string): Promise<{ error: unknown }> {
  const response = await fetch(url)
  return { error: { status: response.status, ...((await response.json()) as object) } }
}

const versionsOfObjects = 'versions of objects'
const transformations = 'transformations of images'
const vectorBuckets = 'vector buckets'
const analyticsBuckets = 'analytics buckets'
const lifecycles = 'lifecycles of buckets'
const path = 'folder/mine.txt'
const transform = { width: 10 }
const since = '2.119.0'

function ofVersions(name: string, call: AbsentFeature['call']): AbsentFeature {
  return { name: `\`${name}\` of a version`, method: `from.${name}`, what: versionsOfObjects, since, call }
}

function vector(name: string, target: (storage: Storage) => object, ...args: unknown[]): AbsentFeature {
  return {
    name: `\`${name}\``,
    method: name,
    what: vectorBuckets,
    call: (storage) => invoke(target(storage), name.slice(name.lastIndexOf('.') + 1), ...args),
  }
}

function analytics(method: string, ...args: unknown[]): AbsentFeature {
  return {
    name: `\`analytics.${method}\``,
    method: `analytics.${method}`,
    what: analyticsBuckets,
    call: ({ analytics }) => invoke(analytics, method, ...args),
  }
}

const inBucket = ({ vectors }: Storage) => vectors.from('v')
const inIndex = ({ vectors }: Storage) => vectors.from('v').index('i')

export const absentFeatures: AbsentFeature[] = [
  {
    name: '`createBucket` with another `type`',
    method: 'createBucket',
    what: 'buckets of type "ANALYTICS"',
    call: (storage) => storage.createBucket('never', { public: false, type: 'ANALYTICS' }),
  },
  {
    name: '`createBucket` with versions',
    method: 'createBucket',
    what: versionsOfObjects,
    since,
    call: (storage) => storage.createBucket('never', { public: false, versioningStatus: 'ENABLED' }),
  },
  {
    name: '`updateBucket` with versions',
    method: 'updateBucket',
    what: versionsOfObjects,
    since,
    call: (storage) => storage.updateBucket('plain', { public: true, versioningStatus: 'ENABLED' }),
  },
  {
    name: '`getBucketLifecycle`',
    method: 'getBucketLifecycle',
    what: lifecycles,
    since,
    call: (storage) => invoke(storage, 'getBucketLifecycle', 'plain'),
  },
  {
    name: '`updateBucketLifecycle`',
    method: 'updateBucketLifecycle',
    what: lifecycles,
    since,
    call: (storage) => invoke(storage, 'updateBucketLifecycle', 'plain', { rules: [] }),
  },
  {
    name: '`deleteBucketLifecycle`',
    method: 'deleteBucketLifecycle',
    what: lifecycles,
    since,
    call: (storage) => invoke(storage, 'deleteBucketLifecycle', 'plain'),
  },
  {
    name: '`download` with `transform`',
    method: 'from.download',
    what: transformations,
    call: async (_, files) => files.download(path, { transform }),
  },
  {
    name: '`getPublicUrl` with `transform`, then GET',
    method: 'from.getPublicUrl',
    what: transformations,
    call: (_, files) => fetched(files.getPublicUrl(path, { transform }).data.publicUrl),
  },
  {
    name: '`createSignedUrl` with `transform`',
    method: 'from.createSignedUrl',
    what: transformations,
    call: (_, files) => files.createSignedUrl(path, 60, { transform }),
  },
  ofVersions('download', async (_, files) => files.download(path, { versionId: 'x' })),
  ofVersions('info', (_, files) => files.info(path, { versionId: 'x' })),
  {
    ...ofVersions('getPublicUrl', (_, files) => fetched(files.getPublicUrl(path, { versionId: 'x' }).data.publicUrl)),
    name: '`getPublicUrl` of a version, then GET',
  },
  ofVersions('createSignedUrl', (_, files) => files.createSignedUrl(path, 60, { versionId: 'x' })),
  ofVersions('remove', (_, files) => files.remove([{ path, versionId: 'x' }])),
  ofVersions('move', (_, files) => files.move(path, 'never', { sourceVersionId: 'x' })),
  ofVersions('copy', (_, files) => files.copy(path, 'never', { sourceVersionId: 'x' })),
  ofVersions('list', (_, files) => files.list('', { noncurrentVersions: 'include' })),
  ofVersions('listV2', (_, files) => files.listV2({ deleteMarkers: 'only' })),
  ...['createBucket', 'getBucket', 'listBuckets', 'deleteBucket'].map((name) =>
    vector(`vectors.${name}`, ({ vectors }) => vectors, ...(name === 'listBuckets' ? [] : ['v'])),
  ),
  vector('vectors.from.createIndex', inBucket, {
    indexName: 'i',
    dataType: 'float32',
    dimension: 1,
    distanceMetric: 'cosine',
  }),
  vector('vectors.from.listIndexes', inBucket),
  vector('vectors.from.getIndex', inBucket, 'i'),
  vector('vectors.from.deleteIndex', inBucket, 'i'),
  vector('vectors.from.index.putVectors', inIndex, { vectors: [{ key: 'a', data: { float32: [1] } }] }),
  vector('vectors.from.index.getVectors', inIndex, { keys: ['a'] }),
  vector('vectors.from.index.listVectors', inIndex),
  vector('vectors.from.index.queryVectors', inIndex, { queryVector: { float32: [1] }, topK: 1 }),
  vector('vectors.from.index.deleteVectors', inIndex, { keys: ['a'] }),
  analytics('createBucket', 'a'),
  analytics('listBuckets'),
  analytics('deleteBucket', 'a'),
  {
    name: '`analytics.from` and its catalogue',
    method: 'analytics.from',
    what: analyticsBuckets,
    call: ({ analytics }) => analytics.from('a').listNamespaces(),
  },
]

/** Returns the methods of the clients that only lead to absent features. */
export function methodsOfAbsentParts({ vectors, analytics }: Storage): string[] {
  const under = (name: string, target: object) => methodsOf(target).map((method) => `${name}.${method}`)
  return [
    ...under('vectors', vectors),
    ...under('vectors.from', vectors.from('v')),
    ...under('vectors.from.index', vectors.from('v').index('i')),
    ...under('analytics', analytics),
  ]
}
