// The requests and responses that both versions of the storage clients rely on, rule by rule; client-matrix.test.ts
// tests the rights.
import { gzipSync } from 'node:zlib'
import t from 'tap'
import { startRuntime } from '#test/support/runtime.ts'
import { objects } from './support/objects.ts'
import { storageOf, versions, type Reply } from './support/storage-clients.ts'
import { bucket, data, headersOf, names, openSetting } from './support/wire.ts'

t.test('Storage clients', async (t) => {
  const runtime = await startRuntime(t)

  for (const version of versions) {
    const setting = () => openSetting(runtime, version)

    t.test(`${version}: clients read exact statuses, codes and messages from rejections`, async (t) => {
      const { tenant, storage, files } = await setting()
      await bucket(tenant, 'docs', { max_file_size: 10, allowed_mime_types: ['text/plain'] })
      await files.upload('a', 'x', { contentType: 'text/plain' })
      await bucket(tenant, 'shared', { policy: 'authenticated' })
      await storageOf(tenant, 'peter', version).from('shared').upload('his', 'x')
      const anonymous = storageOf(tenant, undefined, version)
      const rejections: [call: () => PromiseLike<Reply>, status: number, message: string | RegExp][] = [
        [() => storage.createBucket('My_Bucket'), 400, /invalid characters/],
        [() => storage.createBucket('ab'), 400, /length must be 3-63/],
        [() => anonymous.createBucket('never'), 401, /signed-in user/],
        [() => storage.createBucket('docs'), 409, 'The resource already exists'],
        [() => storage.getBucket('nowhere'), 404, 'Bucket not found'],
        [() => storage.deleteBucket('docs'), 409, /not empty: it holds 1 file\.$/],
        [() => files.info('nowhere'), 404, 'Object not found'],
        [() => files.download('nowhere'), 404, 'Object not found'],
        [() => files.upload('a', 'x', { contentType: 'text/plain' }), 409, 'The resource already exists'],
        [() => files.copy('a', 'a'), 409, 'The resource already exists'],
        [() => files.move('nowhere', 'b'), 404, 'Object not found'],
        [
          () => files.upload('b', 'more than ten', { contentType: 'text/plain' }),
          413,
          'The object exceeded the maximum allowed size',
        ],
        [() => files.upload('b', 'x'), 415, 'mime type text/plain;charset=UTF-8 is not supported'],
        [() => files.upload('b', new Blob(['x'], { type: 'image/png' })), 415, 'mime type image/png is not supported'],
        [() => files.upload('../b', 'x', { contentType: 'text/plain' }), 404, /./],
        [() => files.upload('100%.txt', 'x', { contentType: 'text/plain' }), 400, /percent sign/],
        [
          () => storageOf(tenant, 'peter', version).from('docs').upload('b', 'x', { contentType: 'text/plain' }),
          403,
          /only the bucket's owner or the service role may upload into a public bucket$/,
        ],
        [() => storage.from('shared').uploadToSignedUrl('a', 'nonsense', 'x'), 400, /signature/],
      ]
      for (const [call, status, message] of rejections) {
        const { data: nothing, error } = await call()
        t.match(
          { nothing, error },
          { nothing: null, error: { name: 'StorageApiError', status, statusCode: String(status), message } },
          `${status} ${String(message)}`,
        )
      }
      t.match(
        await files.exists('nowhere'),
        { data: false, error: { name: 'StorageApiError' } },
        'exists() is false for an absent object, in both versions',
      )
      t.match(await files.exists('a'), { data: true, error: null })
    })

    t.test(`${version}: an upload keeps type, cache control and metadata, by every method`, async (t) => {
      const { tenant, files } = await setting()
      await bucket(tenant, 'docs')
      const form = (...order: string[]) => {
        const made = new FormData()
        for (const part of order) {
          if (part === 'file') made.append('any name', new Blob(['form'], { type: 'text/css' }), 'x.css')
          else made.append(part, part === 'metadata' ? '{"by":"form"}' : '60')
        }
        return made
      }
      const options = { cacheControl: '60', metadata: { by: 'options', snake_case: { deep: [1, 'ä'] } } }
      const sent: [name: string, upload: () => Promise<Reply>, type: string, cache: string, metadata: object][] = [
        [
          'text',
          () => files.upload('text', 'text', options),
          'text/plain;charset=UTF-8',
          'max-age=60',
          { by: 'options', snakeCase: { deep: [1, 'ä'] } },
        ],
        [
          'bytes',
          () => files.upload('bytes', Buffer.from('bytes'), { contentType: 'application/json' }),
          'application/json',
          'max-age=3600',
          {},
        ],
        [
          'blob',
          () =>
            files.upload('blob', new Blob(['blob'], { type: 'image/png' }), { ...options, contentType: 'text/html' }),
          'image/png',
          'max-age=60',
          { by: 'options' },
        ],
        ['typeless', () => files.upload('typeless', new Blob(['x'])), 'application/octet-stream', 'max-age=3600', {}],
        ['form', () => files.upload('form', form('file'), options), 'text/css', 'max-age=60', { by: 'options' }],
        [
          'late',
          () => files.upload('late', form('file', 'cacheControl', 'metadata')),
          'text/css',
          'max-age=60',
          { by: 'form' },
        ],
        [
          'early',
          () => files.upload('early', form('metadata', 'cacheControl', 'file'), { cacheControl: '1' }),
          'text/css',
          'max-age=60',
          { by: 'form' },
        ],
        [
          'updated',
          () => files.update('updated', 'x', { cacheControl: '5', contentType: 'a/b' }),
          'a/b',
          'max-age=5',
          {},
        ],
        [
          'headers',
          () => files.upload('headers', 'x', { headers: { 'cache-control': 'no-store', 'x-upsert': 'true' } }),
          'text/plain;charset=UTF-8',
          'no-store',
          {},
        ],
      ]
      for (const [name, upload, contentType, cacheControl, metadata] of sent) {
        t.match(data(await upload()), { path: name, fullPath: `docs/${name}`, id: /^[0-9a-f-]{36}$/ }, name)
        t.match(data(await files.info(name)), {
          name,
          contentType,
          cacheControl,
          metadata,
          bucketId: 'docs',
          version: String,
          etag: /^"[0-9a-f]{64}"$/,
          lastModified: String,
          createdAt: String,
        })
        const { headers } = await tenant.request('GET', `${objects}/docs/${name}`)
        t.match(headers, { 'content-type': contentType, 'cache-control': cacheControl }, name)
      }
      const gzip = Buffer.from([0x1f, 0x8b, 8, 0])
      const json = await tenant.request('POST', `${objects}/docs/raw.json`, {
        as: 'olga',
        body: gzip,
        headers: { 'content-type': 'application/json', 'content-encoding': 'gzip' },
      })
      t.equal(json.status, 200, 'content with the type JSON or gzip is neither parsed nor inflated')
      t.ok((await tenant.request('GET', `${objects}/docs/raw.json`)).bytes.equals(gzip))
    })

    t.test(`${version}: an empty file is a file`, async (t) => {
      const { tenant, files } = await setting()
      await bucket(tenant, 'docs')
      for (const [name, body] of Object.entries({
        text: '',
        bytes: new ArrayBuffer(0),
        blob: new Blob([], { type: 'text/plain' }),
        stream: new Blob([]).stream(),
      })) {
        t.match(data(await files.upload(name, body)), { path: name })
        t.equal(data(await files.info(name))['size'], 0, name)
        t.equal((data(await files.download(name)) as unknown as Blob).size, 0, name)
      }
      t.equal(data(await files.update('text', ''))['path'], 'text')
    })

    t.test(`${version}: names of all kinds are returned unchanged, by every path to an object`, async (t) => {
      const { tenant, files } = await setting()
      await bucket(tenant, 'docs')
      const plain = [
        'a b.txt',
        'ä ü.txt',
        'a\u0308.txt',
        '日本語.txt',
        '💩.txt',
        'a+b.txt',
        'a&b=c.txt',
        "it's (1).txt",
        'a;b,c@d!$.txt',
        '.emptyFolderPlaceholder',
        'CON',
        '[x]{y}|^`".txt',
      ]
      // These characters have a meaning in a URL, so a caller encodes them.
      const meaning = ['100%.txt', 'a%20b.txt', 'a?b=c.txt', 'a#b.txt']
      for (const name of [...plain, ...meaning]) {
        const folder = 'in ä+folder'
        const path = `${folder}/${name}`
        const given = meaning.includes(name) ? `${folder}/${encodeURIComponent(name)}` : path
        t.match(data(await files.upload(given, name)), { path: given, fullPath: `docs/${path}` }, name)
        t.equal(await (data(await files.download(given)) as unknown as Blob).text(), name, `${name}: download`)
        t.equal(data(await files.info(given))['name'], path, `${name}: info`)
        t.same(await names(files, folder), [name], `${name}: list`)
        t.match(data(await files.listV2({ prefix: path })), { objects: [{ key: path, name: path }] }, `${name}: listV2`)
        const signed = data(await files.createSignedUrl(given, 60))['signedUrl']
        if (!/[?#]/.test(name)) t.equal((await headersOf(String(signed))).text, name, `${name}: signed URL`)
        const url = files.getPublicUrl(path).data.publicUrl
        if (!/[?#]/.test(name)) t.equal((await headersOf(url)).text, name, `${name}: public URL`)
        t.equal((await files.move(path, `${path}2`)).error, null, `${name}: move`)
        t.equal((await files.copy(`${path}2`, path)).error, null, `${name}: copy`)
        t.match(data(await files.remove([path, `${path}2`])), [{ name: path }, { name: `${path}2` }], `${name}: remove`)
      }
      t.same(data(await files.list()), [])
    })

    t.test(`${version}: a URL serves any holder, under the requested name`, async (t) => {
      const { tenant, storage, files } = await setting()
      await bucket(tenant, 'docs')
      await bucket(tenant, 'hidden', { policy: 'private' })
      const hidden = storage.from('hidden')
      for (const to of [files, hidden]) await to.upload('in/ä b.txt', '0123456789', { contentType: 'text/plain' })
      const attached = (name: string) => {
        const plain = name.replaceAll(/[^\x20-\x7e]/g, '_').replaceAll(/["%]/g, '_')
        return `attachment; filename="${plain}"; filename*=UTF-8''${encodeURIComponent(name)}`
      }
      const urls = async (options?: object) => [
        files.getPublicUrl('in/ä b.txt', options).data.publicUrl,
        String(data(await hidden.createSignedUrl('in/ä b.txt', 60, options))['signedUrl']),
        String(
          (data(await hidden.createSignedUrls(['in/ä b.txt'], 60, options)) as unknown as { signedUrl: string }[])[0]
            ?.signedUrl,
        ),
      ]
      for (const url of await urls()) {
        t.match(await headersOf(url), { status: 200, text: '0123456789', 'content-type': 'text/plain' })
        t.match(await headersOf(url, { headers: { range: 'bytes=2-4' } }), {
          status: 206,
          text: '234',
          'content-range': 'bytes 2-4/10',
        })
        t.match(await headersOf(url, { method: 'HEAD' }), { status: 200, text: '', 'content-length': '10' })
        t.notOk('content-disposition' in (await headersOf(url)))
      }
      for (const name of ['report.txt', 'ä b+c.txt', '100% "x".txt', '日本.txt']) {
        for (const url of await urls({ download: name, cacheNonce: '7' }))
          t.match(await headersOf(url), { 'content-disposition': attached(name) }, `${name}: ${url.slice(0, 90)}`)
      }
      for (const url of await urls({ download: true }))
        t.match(await headersOf(url), { 'content-disposition': attached('ä b.txt') })
      t.match(
        data(await hidden.createSignedUrls(['in/ä b.txt', 'absent', '../x', ''], 60)),
        [
          { path: 'in/ä b.txt', error: null },
          { path: 'absent', error: /does not exist or you do not have access/, signedUrl: null },
          { path: '../x', error: String, signedUrl: null },
          { path: '', error: String, signedUrl: null },
        ],
        'in the order of the request',
      )
    })

    t.test(`${version}: only the signature of an upload URL decides whether it may overwrite`, async (t) => {
      const { tenant, files } = await setting()
      await bucket(tenant, 'docs')
      const anonymous = storageOf(tenant, undefined, version).from('docs')
      const sign = async (options?: object) => String(data(await files.createSignedUploadUrl('a', options))['token'])
      const [once, often] = [await sign(), await sign({ upsert: true })]
      t.match(
        data(
          await anonymous.uploadToSignedUrl('a', once, 'one', {
            contentType: 'text/plain',
            cacheControl: '9',
            metadata: { n: 1 },
          }),
        ),
        { path: 'a', fullPath: 'docs/a' },
      )
      t.match(data(await files.info('a')), { contentType: 'text/plain', cacheControl: 'max-age=9', metadata: { n: 1 } })
      t.match(await anonymous.uploadToSignedUrl('a', once, 'two', { upsert: true }), { error: { status: 409 } })
      t.match(await anonymous.uploadToSignedUrl('a', often, 'three', { upsert: false }), { error: null })
      t.match(await anonymous.uploadToSignedUrl('b', often, 'four'), { error: { status: 400 } }, 'another path')
      t.match(
        await headersOf(`${tenant.url}${objects}/sign/docs/a?token=${often}`),
        { status: 400 },
        'an upload token does not allow reading',
      )
      t.equal((await headersOf(files.getPublicUrl('a').data.publicUrl)).text, 'three')
    })

    t.test(`${version}: a copy has the metadata of its source, or the metadata in the request`, async (t) => {
      const { tenant, files } = await setting()
      await bucket(tenant, 'docs')
      await files.upload('a', 'x', { contentType: 'text/css', cacheControl: '5', metadata: { mine: 1 } })
      t.equal((await files.copy('a', 'b')).error, null)
      t.match(data(await files.info('b')), {
        contentType: 'text/css',
        cacheControl: 'max-age=5',
        metadata: { mine: 1 },
      })
      if (version === '2.109.0') return
      t.equal(
        (
          await files.copy('a', 'c', {
            copyMetadata: false,
            metadata: { cacheControl: 'no-cache', mimetype: 'text/plain' },
          })
        ).error,
        null,
      )
      t.same(
        { ...data(await files.info('c')), ...{ id: 0, version: 0, etag: 0, lastModified: 0, createdAt: 0 } },
        {
          id: 0,
          name: 'c',
          version: 0,
          bucketId: 'docs',
          size: 1,
          contentType: 'text/plain',
          cacheControl: 'no-cache',
          etag: 0,
          metadata: {},
          ownerId: 'olga',
          lastModified: 0,
          createdAt: 0,
        },
      )
      t.match(await files.copy('a', 'd', { copyMetadata: false, metadata: { mimetype: 'nonsense' } }), {
        error: { status: 400 },
      })
      const copy = async (metadata: string) =>
        tenant.request('POST', `${objects}/copy`, {
          as: 'olga',
          headers: { 'x-metadata': Buffer.from(metadata).toString('base64') },
          body: { bucketId: 'docs', sourceKey: 'a', destinationKey: 'e', copyMetadata: false },
        })
      t.equal((await copy('[]')).status, 400)
      t.equal((await copy('{"its":"own"}')).status, 200)
      t.match(data(await files.info('e')), { contentType: 'text/css', metadata: { its: 'own', mine: undefined } })
    })

    t.test(`${version}: an object is sent with its ETag and its encoding`, async (t) => {
      const { tenant, files } = await setting()
      await bucket(tenant, 'docs')
      const zipped = gzipSync('hello')
      const headers = { 'content-encoding': 'gzip', 'content-type': 'text/plain' }
      const upload = (path: string, more: object = {}) =>
        tenant.request('POST', `${objects}/docs/${path}`, {
          as: 'olga',
          headers: { ...headers, ...more },
          body: zipped,
        })
      t.match(await upload('a'), { status: 200 })
      t.match(await upload('b', { 'content-encoding': 'g/zip' }), { status: 400 })
      t.equal((await files.copy('a', 'c')).error, null)
      const form = new FormData()
      form.append('contentEncoding', 'gzip')
      form.append('', new Blob([zipped], { type: 'text/plain' }))
      t.equal((await files.upload('d', form)).error, null)
      for (const path of ['a', 'c', 'd']) {
        const sent = await tenant.request('GET', `${objects}/docs/${path}`, { as: 'olga' })
        t.equal(sent.headers['content-encoding'], 'gzip', path)
        t.same(sent.bytes, zipped, 'the bytes are not decoded')
        t.equal(await (data(await files.download(path)) as unknown as Blob).text(), 'hello', 'but by the client')
        const info = await tenant.request('HEAD', `${objects}/info/docs/${path}`, { as: 'olga' })
        t.match(info, { status: 200, headers: { etag: sent.headers.etag, 'last-modified': String } })
      }
      t.equal((await files.upload('a', 'plain', { upsert: true })).error, null)
      t.notOk((await tenant.request('GET', `${objects}/docs/a`, { as: 'olga' })).headers['content-encoding'])
    })
  }

  t.same(runtime.errors, [], 'no internal error occurred')
})
