// Each method of the storage clients as a call with an observable outcome: the right that it needs, and the state
// afterwards.
import { content, dataOf, path, Rejected, type At, type Case } from './client-outcomes.ts'
import type { FileBody, Files } from './storage-clients.ts'

function must(ok: boolean, what: string): 'yes' {
  if (!ok) throw new Error(what)
  return 'yes'
}

function list(value: unknown): Record<string, unknown>[] {
  if (!Array.isArray(value)) throw new Error(`no list: ${JSON.stringify(value)}`)
  return value as Record<string, unknown>[]
}

function record(value: unknown): Record<string, unknown> {
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new Error(`no object: ${JSON.stringify(value)}`)
  return value as Record<string, unknown>
}

async function textOf(files: Files, at: string): Promise<string | undefined> {
  const { data } = await files.download(at)
  return data instanceof Blob ? data.text() : undefined
}

async function fetched(url: unknown): Promise<string> {
  const response = await fetch(String(url))
  const text = await response.text()
  if (!response.ok)
    throw new Rejected({
      name: 'StorageApiError',
      message: text,
      status: response.status,
      statusCode: String(response.status),
    })
  return text
}

const bytes = new TextEncoder().encode('new content')

function form(): FormData {
  const form = new FormData()
  form.append('some name', new Blob([bytes], { type: 'text/plain' }), 'file.txt')
  return form
}

function upload(kind: string, body: () => FileBody): Case {
  return {
    name: `\`upload\` (${kind})`,
    method: 'from.upload',
    right: 'add',
    call: async ({ files, bucket }) => {
      const made = record(
        dataOf(
          await files.upload('new/a.txt', body(), {
            contentType: 'text/plain',
            cacheControl: '60',
            metadata: { kind },
          }),
        ),
      )
      return must(
        made['path'] === 'new/a.txt' && made['fullPath'] === `${bucket}/new/a.txt` && typeof made['id'] === 'string',
        JSON.stringify(made),
      )
    },
    done: async ({ bucket }, service) => (await textOf(service.from(bucket), 'new/a.txt')) === 'new content',
  }
}

function overwrite(name: string, method: 'upload' | 'update', options: object): Case {
  return {
    name,
    method: `from.${method}`,
    right: 'change',
    call: async ({ files }) => must(record(dataOf(await files[method](path, bytes, options)))['path'] === path, name),
    done: async ({ bucket }, service) => (await textOf(service.from(bucket), path)) === 'new content',
  }
}

/** Builds a case that moves or copies, to a bucket of the same kind if `across`. */
function relocate(method: 'move' | 'copy', across: boolean): Case {
  const target = ({ bucket, elsewhere }: At) => (across ? elsewhere : bucket)
  return {
    name: `\`${method}\`${across ? ' to another bucket' : ''}`,
    method: `from.${method}`,
    right: method === 'move' ? 'change' : 'add',
    call: async (at) => {
      const data = record(
        dataOf(
          await at.files[method](path, `to/${method}.txt`, across ? { destinationBucket: at.elsewhere } : undefined),
        ),
      )
      return must(
        method === 'move'
          ? data['message'] === 'Successfully moved'
          : data['path'] === `${target(at)}/to/${method}.txt`,
        JSON.stringify(data),
      )
    },
    done: async (at, service) =>
      (await textOf(service.from(target(at)), `to/${method}.txt`)) === content &&
      ((await textOf(service.from(at.bucket), path)) === undefined) === (method === 'move'),
  }
}

export const cases: Case[] = [
  {
    name: '`createBucket`',
    method: 'createBucket',
    right: 'be signed in',
    call: async ({ storage, bucket, policy }) =>
      must(
        record(
          dataOf(
            await storage.createBucket(`${bucket}-new`, {
              public: policy === 'public',
              fileSizeLimit: '1MB',
              allowedMimeTypes: ['text/*'],
            }),
          ),
        )['name'] === `${bucket}-new`,
        'name',
      ),
    done: async ({ bucket }, service) => (await service.getBucket(`${bucket}-new`)).error === null,
  },
  {
    name: '`getBucket`',
    method: 'getBucket',
    right: 'see',
    call: async ({ storage, bucket, policy }) => {
      const data = record(dataOf(await storage.getBucket(bucket)))
      return must(
        data['name'] === bucket && data['public'] === (policy === 'public') && data['type'] === 'STANDARD',
        JSON.stringify(data),
      )
    },
  },
  {
    name: '`listBuckets` (search, sort, page)',
    method: 'listBuckets',
    right: 'see in the list',
    call: async ({ storage, bucket }) => {
      const [found, ...more] = list(
        dataOf(
          await storage.listBuckets({
            search: bucket,
            sortColumn: 'created_at',
            sortOrder: 'desc',
            limit: 10,
            offset: 0,
          }),
        ),
      )
      must(more.length === 0, 'others were found')
      must(
        list(dataOf(await storage.listBuckets({ search: bucket, limit: 10, offset: 1 }))).length === 0,
        'the next page',
      )
      return found === undefined ? 'none' : must(found['name'] === bucket, JSON.stringify(found))
    },
  },
  {
    name: '`updateBucket`',
    method: 'updateBucket',
    right: 'change',
    call: async ({ storage, bucket }) =>
      must(
        record(dataOf(await storage.updateBucket(bucket, { public: false, fileSizeLimit: 5_000 })))['message'] ===
          'Successfully updated',
        'message',
      ),
    done: async ({ bucket }, service) => record(dataOf(await service.getBucket(bucket)))['file_size_limit'] === 5_000,
  },
  {
    name: '`emptyBucket`',
    method: 'emptyBucket',
    right: 'change',
    call: async ({ storage, bucket }) =>
      must(record(dataOf(await storage.emptyBucket(bucket)))['message'] === 'Successfully emptied', 'message'),
    done: async ({ bucket }, service) => list(dataOf(await service.from(bucket).list())).length === 0,
  },
  {
    name: '`deleteBucket`',
    method: 'deleteBucket',
    right: 'change',
    prepare: async ({ bucket }, service) => dataOf(await service.emptyBucket(bucket)),
    call: async ({ storage, bucket }) =>
      must(record(dataOf(await storage.deleteBucket(bucket)))['message'] === 'Successfully deleted', 'message'),
    done: async ({ bucket }, service) => (await service.getBucket(bucket)).error !== null,
  },
  {
    name: '`purgeBucketCache`',
    method: 'purgeBucketCache',
    right: 'see, signed in',
    call: async ({ storage, bucket }) =>
      must(record(dataOf(await storage.purgeBucketCache(bucket)))['message'] === 'success', 'message'),
  },

  upload('text', () => 'new content'),
  upload('bytes', () => bytes.buffer),
  upload('stream', () => new Blob([bytes]).stream()),
  upload('Blob', () => new Blob([bytes], { type: 'text/plain' })),
  upload('FormData', form),
  {
    name: '`upload`, the path is taken',
    method: 'from.upload',
    right: 'add where there is one',
    call: async ({ files }) => must(dataOf(await files.upload(path, bytes)) === null, 'it was taken'),
    done: async ({ bucket }, service) => (await textOf(service.from(bucket), path)) !== content,
  },
  overwrite('`upload` with `upsert`', 'upload', { upsert: true }),
  overwrite('`update`', 'update', {}),
  {
    name: '`download`',
    method: 'from.download',
    right: 'see',
    call: async ({ files }) => {
      const blob = dataOf(await files.download(path))
      return must(blob instanceof Blob && blob.type === 'text/plain' && (await blob.text()) === content, 'content')
    },
  },
  {
    name: '`download().asStream()`',
    method: 'from.download',
    right: 'see',
    call: async ({ files }) => {
      const stream = dataOf(await files.download(path).asStream())
      return must(stream instanceof ReadableStream && (await new Response(stream).text()) === content, 'content')
    },
  },
  {
    name: '`getPublicUrl`, then GET',
    method: 'from.getPublicUrl',
    right: 'read without a token',
    call: async ({ files }) =>
      must((await fetched(files.getPublicUrl(path, { download: 'a b.txt' }).data.publicUrl)) === content, 'content'),
  },
  {
    name: '`info`',
    method: 'from.info',
    right: 'see',
    call: async ({ files, bucket }) => {
      const data = record(dataOf(await files.info(path)))
      return must(
        data['name'] === path &&
          data['bucketId'] === bucket &&
          data['size'] === content.length &&
          data['contentType'] === 'text/plain',
        JSON.stringify(data),
      )
    },
  },
  {
    // The older client sends HEAD and takes every 404 for an absent object; the newer one distinguishes a missing
    // bucket.
    name: '`exists`',
    method: 'from.exists',
    right: 'see',
    instead: { '2.109.0': { 404: 'no' } },
    call: async ({ files }) => {
      try {
        const { data, error } = await files.exists(path)
        must(data === (error === null), JSON.stringify(data))
        return data === true ? 'yes' : 'no'
      } catch (thrown) {
        throw thrown instanceof Error && thrown.name === 'StorageApiError' ? new Rejected(thrown) : thrown
      }
    },
  },
  {
    name: '`list` (folders, search, sort, offset)',
    method: 'from.list',
    right: 'see',
    call: async ({ files }) => {
      const top = list(dataOf(await files.list()))
      must(top.length === 1 && top[0]?.['name'] === 'folder' && top[0]['id'] === null, JSON.stringify(top))
      const inside = list(
        dataOf(
          await files.list('folder', { search: 'MINE', sortBy: { column: 'created_at', order: 'desc' }, limit: 5 }),
        ),
      )
      must(
        inside.length === 1 &&
          inside[0]?.['name'] === 'mine.txt' &&
          record(inside[0]['metadata'])['mimetype'] === 'text/plain',
        JSON.stringify(inside),
      )
      return must(list(dataOf(await files.list('folder', { offset: 1 }))).length === 0, 'the next page')
    },
  },
  {
    name: '`listV2` (prefix, folders, cursor)',
    method: 'from.listV2',
    right: 'see',
    call: async ({ files }) => {
      const top = record(dataOf(await files.listV2({ with_delimiter: true, limit: 1 })))
      must(
        top['hasNext'] === false &&
          list(top['folders'])[0]?.['name'] === 'folder/' &&
          list(top['objects']).length === 0,
        JSON.stringify(top),
      )
      const inside = record(dataOf(await files.listV2({ prefix: 'fold' })))
      return must(list(inside['objects'])[0]?.['key'] === path, JSON.stringify(inside))
    },
  },
  relocate('move', false),
  relocate('move', true),
  relocate('copy', false),
  relocate('copy', true),
  {
    name: '`remove`',
    method: 'from.remove',
    right: 'remove some',
    call: async ({ files }) => {
      const removed = list(dataOf(await files.remove([path, 'folder/absent'])))
      return removed.length === 0
        ? 'none'
        : must(removed.length === 1 && removed[0]?.['name'] === path, JSON.stringify(removed))
    },
    done: async ({ bucket }, service) => (await textOf(service.from(bucket), path)) === undefined,
  },
  {
    name: '`createSignedUrl`, then GET',
    method: 'from.createSignedUrl',
    right: 'see',
    call: async ({ files }) =>
      must(
        (await fetched(record(dataOf(await files.createSignedUrl(path, 60, { download: 'a b.txt' })))['signedUrl'])) ===
          content,
        'content',
      ),
  },
  {
    name: '`createSignedUrls`, then GET',
    method: 'from.createSignedUrls',
    right: 'see',
    call: async ({ files }) => {
      const [first, second] = list(dataOf(await files.createSignedUrls([path, 'absent'], 60)))
      must(
        first?.['path'] === path &&
          first['error'] === null &&
          typeof second?.['error'] === 'string' &&
          second['signedUrl'] === null,
        JSON.stringify([first, second]),
      )
      return must((await fetched(first?.['signedUrl'])) === content, 'content')
    },
  },
  {
    name: '`createSignedUploadUrl`',
    method: 'from.createSignedUploadUrl',
    right: 'add',
    call: async ({ files }) => {
      const data = record(dataOf(await files.createSignedUploadUrl('new/a.txt')))
      return must(
        data['path'] === 'new/a.txt' &&
          typeof data['token'] === 'string' &&
          String(data['signedUrl']).includes('token='),
        JSON.stringify(data),
      )
    },
  },
  {
    name: "`uploadToSignedUrl` with the owner's token",
    method: 'from.uploadToSignedUrl',
    right: 'have the URL',
    call: async ({ files, owner, bucket }) => {
      const token = String(record(dataOf(await owner.createSignedUploadUrl('new/a.txt')))['token'])
      const data = record(
        dataOf(await files.uploadToSignedUrl('new/a.txt', token, new Blob([bytes], { type: 'text/plain' }))),
      )
      return must(data['path'] === 'new/a.txt' && data['fullPath'] === `${bucket}/new/a.txt`, JSON.stringify(data))
    },
    done: async ({ bucket }, service) => (await textOf(service.from(bucket), 'new/a.txt')) === 'new content',
  },
  {
    name: '`purgeCache`',
    method: 'from.purgeCache',
    right: 'see, signed in',
    call: async ({ files }) => must(record(dataOf(await files.purgeCache(path)))['message'] === 'success', 'message'),
  },
]
