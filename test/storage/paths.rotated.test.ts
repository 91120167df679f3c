// Sends any text as a path, a bucket or a prefix, written raw, encoded once and encoded twice. Each call returns it
// byte for byte or rejects it with a reason. No text causes an internal error or becomes the name of a file.
import { once } from 'node:events'
import { readdir } from 'node:fs/promises'
import { connect } from 'node:net'
import t, { type Test } from 'tap'
import { effort, seed } from '#test/support/effort.ts'
import { startPlatform } from '#test/support/platform.ts'
import { startRuntime, type TestTenant } from '#test/support/runtime.ts'
import { until } from '#test/support/until.ts'
import { meant, pathCorpus, written, type Form } from './support/path-corpus.ts'

const objects = '/storage/v1/object'
const forms: readonly Form[] = ['raw', 'encoded', 'double']

/** Selects one of `small` in `npm test`, and all in the full run. */
function oneOf(small: number): (nth: number) => boolean {
  const step = effort({ small, full: 1 })
  return (nth) => nth % step === seed % step
}

function some<T>(items: readonly T[], small: number): T[] {
  const isTaken = oneOf(small)
  return items.filter((_, nth) => isTaken(nth))
}

const corpus = pathCorpus(oneOf(10))

async function allOf<T>(items: readonly T[], work: (item: T) => Promise<void>): Promise<void> {
  const left = [...items]
  await Promise.all(
    Array.from({ length: 8 }, async () => {
      for (let next = left.shift(); next !== undefined; next = left.shift()) await work(next)
    }),
  )
}

interface RawResponse {
  status: number
  body: string
}

/** Sends a request with exactly this target, which an HTTP client would normalize. */
async function requestRaw(
  port: number,
  method: string,
  target: string,
  headers: Record<string, string>,
  body: Buffer,
): Promise<RawResponse> {
  const socket = connect(port, '127.0.0.1')
  const chunks: Buffer[] = []
  socket.on('data', (chunk: Buffer) => chunks.push(chunk)).on('error', () => undefined)
  const lines = Object.entries({
    host: 'x',
    connection: 'close',
    'content-length': String(body.length),
    ...headers,
  }).map(([name, value]) => `${name}: ${value}\r\n`)
  socket.write(Buffer.concat([Buffer.from(`${method} ${target} HTTP/1.1\r\n${lines.join('')}\r\n`, 'latin1'), body]))
  await once(socket, 'close')
  const [head = '', ...rest] = Buffer.concat(chunks).toString('utf8').split('\r\n\r\n')
  return { status: Number(/^HTTP\/1\.1 (\d{3})/.exec(head)?.[1] ?? 0), body: rest.join('\r\n\r\n') }
}

const show = (text: string) => JSON.stringify(text.length > 50 ? `${text.slice(0, 50)}… (${text.length})` : text)
const encoded = (path: string) => path.split('/').map(encodeURIComponent).join('/')

/** Uploads every text in every form. @returns the paths that exist afterwards */
async function uploadAll(
  t: Test,
  texts: readonly string[],
  upload: (target: string, body: Buffer) => Promise<RawResponse>,
): Promise<Set<string>> {
  const paths = new Set<string>()
  const wrong: string[] = []
  const rejections = new Map<string, number>()
  await allOf(
    texts.flatMap((text) => forms.map((form) => ({ text, form }))),
    async ({ text, form }) => {
      const target = written(text, form)
      const path = meant(target)
      const { status, body } = await upload(target, Buffer.from(path ?? 'nothing'))
      const what = `${form} ${show(text)}: ${status} ${body.slice(0, 200)}`
      if (status === 200) {
        const stored = (JSON.parse(body.slice(body.indexOf('{'), body.lastIndexOf('}') + 1)) as { path: string }).path
        if (stored !== path) wrong.push(`${what}, expected ${show(path ?? 'a rejection')}`)
        paths.add(stored)
        return
      }
      const reason = /"message":"([^"]+)"/.exec(body)?.[1]
      // The HTTP parser rejects a malformed request line before the application can add a reason.
      const isRequest = /^[\x21-\x7e]*$/.test(target)
      if (!(status === 400 || (status === 404 && path === '') || status === 414) || (isRequest && reason === undefined))
        wrong.push(what)
      rejections.set(reason ?? 'not a request', (rejections.get(reason ?? 'not a request') ?? 0) + 1)
    },
  )
  t.same(wrong, [], 'each text is stored under its meaning, or rejected with a reason')
  t.ok(
    paths.size > texts.length / 2 && rejections.size >= 5,
    `${paths.size} paths; rejected: ${JSON.stringify(Object.fromEntries(rejections))}`,
  )
  return paths
}

/** Returns the names of everything below a directory. */
async function namesBelow(directory: string): Promise<string[]> {
  return (await readdir(directory, { recursive: true })).flatMap((path) => path.split('/'))
}

const ofTheStore =
  /^(?:blobs|tmp|store|t_[0-9a-f]{20}|[0-9a-f]{2}|[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12})$/

t.test('Paths', { timeout: 600_000 }, async (t) => {
  const runtime = await startRuntime(t)
  const start = async (): Promise<TestTenant> => {
    const tenant = await runtime.addTenant()
    for (const name of ['docs', 'other'])
      await tenant.request('POST', '/storage/v1/bucket', { as: 'u1', body: { name } })
    return tenant
  }
  const keysOf = async (tenant: TestTenant, bucket = 'docs'): Promise<string[]> => {
    const keys: string[] = []
    for (let cursor: unknown = undefined; ;) {
      const page = (
        await tenant.request('POST', `${objects}/list-v2/${bucket}`, {
          as: 'u1',
          body: { limit: 500, ...(cursor === undefined ? {} : { cursor }) },
        })
      ).json()
      keys.push(...(page['objects'] as { key: string }[]).map(({ key }) => key))
      if (page['hasNext'] !== true) return keys
      cursor = page['nextCursor']
    }
  }
  const sorted = (paths: Iterable<string>) => [...paths].sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)))

  t.test('Paths in URLs are returned byte for byte', { timeout: 600_000 }, async (t) => {
    t.comment(`${corpus.length} texts, seed ${seed}`)
    const tenant = await start()
    const paths = await uploadAll(t, corpus, (target, body) =>
      requestRaw(
        tenant.port,
        'POST',
        `${objects}/docs/${target}`,
        { ...tenant.as('u1'), 'content-type': 'text/plain' },
        body,
      ),
    )
    t.same(await keysOf(tenant), sorted(paths), 'all of them are listed, byte for byte, and nothing else')
    const names = await namesBelow(runtime.directory)
    t.same(
      names.filter((name) => !ofTheStore.test(name)),
      [],
      'no text has become the name of a file',
    )
    // The collector removes files that another form of the same path has replaced.
    await until(async () => (await tenant.files()).length === paths.size, 'one file for each path')

    const checked = some([...paths], 4)
    const wrong: string[] = []
    const check = (what: string, path: string, isSo: boolean, more = '') => {
      if (!isSo) wrong.push(`${what} ${show(path)} ${more}`)
    }
    const signed = (
      await tenant.request('POST', `${objects}/sign/docs`, { as: 'u1', body: { paths: checked.slice(0, 1000) } })
    ).list()
    t.same(
      signed.map(({ path, error }) => [path, error]),
      checked.slice(0, 1000).map((path) => [path, null]),
      'each path can be signed',
    )
    await allOf(checked, async (path) => {
      const at = encoded(path)
      const request = (method: string, where: string, body?: object) =>
        tenant.request(method, `${objects}/${where}`, { as: 'u1', ...(body === undefined ? {} : { body }) })
      check('read', path, (await request('GET', `docs/${at}`)).text === path)
      check('info', path, (await request('GET', `info/docs/${at}`)).json()['name'] === path)
      const url = String((await request('POST', `sign/docs/${at}`)).json()['url'])
      check('signed', path, (await tenant.request('GET', url)).text === path)
      const slash = path.lastIndexOf('/')
      const [folder, name] = [path.slice(0, Math.max(0, slash)), path.slice(slash + 1)]
      const listed = (await request('POST', 'list/docs', { prefix: folder, search: name, limit: 1000 })).list()
      check(
        'list',
        path,
        listed.some((entry) => entry['name'] === name && entry['id'] !== null),
        JSON.stringify(listed).slice(0, 200),
      )
      const begun = (await request('POST', 'list-v2/docs', { prefix: path, limit: 1 })).json()['objects'] as {
        key: string
      }[]
      check('list-v2', path, begun[0]?.key === path, JSON.stringify(begun).slice(0, 200))
      const copied = await request('POST', 'copy', {
        bucketId: 'docs',
        sourceKey: path,
        destinationKey: path,
        destinationBucket: 'other',
      })
      check('copy', path, copied.json()['Key'] === `other/${path}`, copied.text)
      check(
        'removed',
        path,
        (await request('DELETE', `docs/${at}`)).status === 200 && (await request('GET', `docs/${at}`)).status === 404,
      )
      const moved = await request('POST', 'move', {
        bucketId: 'other',
        sourceKey: path,
        destinationKey: path,
        destinationBucket: 'docs',
      })
      check('move', path, moved.status === 200 && (await request('GET', `docs/${at}`)).text === path, moved.text)
      const again = await tenant.request('PUT', `${objects}/docs/${at}`, {
        as: 'u1',
        body: 'again',
        headers: { 'content-type': 'text/plain' },
      })
      check('overwrite', path, again.json()['path'] === path, again.text)
      const upload = String((await request('POST', `upload/sign/docs/${at}`)).json()['token'])
      check(
        'signed upload',
        path,
        (
          await tenant.request('PUT', `${objects}/upload/sign/docs/${at}?token=${upload}`, {
            body: 'x',
            headers: { 'content-type': 'text/plain' },
          })
        ).status === 409,
      )
    })
    t.same(wrong, [], `each of ${checked.length} is returned by every call`)
    t.same(await keysOf(tenant, 'other'), [], 'moved objects are absent from their old paths')
    t.same(await keysOf(tenant), sorted(paths), 'and the bucket contains the same paths as before')
    const removed = (
      await tenant.request('DELETE', `${objects}/docs`, { as: 'u1', body: { prefixes: checked.slice(0, 1000) } })
    ).list()
    t.same(
      sorted(removed.map(({ name }) => String(name))),
      sorted(checked.slice(0, 1000)),
      'the named objects are removed',
    )
    const left = new Set(checked.slice(0, 1000))
    t.same(await keysOf(tenant), sorted([...paths].filter((path) => !left.has(path))), 'and no others')
  })

  t.test(
    'Paths in bodies are returned byte for byte: keys, prefixes, searches and names of buckets',
    { timeout: 600_000 },
    async (t) => {
      const tenant = await start()
      await tenant.request('POST', `${objects}/docs/source`, {
        as: 'u1',
        body: 'x',
        headers: { 'content-type': 'text/plain' },
      })
      const wrong: string[] = []
      const made = new Set<string>()
      const buckets = new Set<string>()
      await allOf(some(corpus, 4), async (text) => {
        const expect = async (
          what: string,
          method: string,
          path: string,
          body: object | undefined,
          statuses: readonly number[],
        ) => {
          const response = await tenant.request(method, path, { as: 'u1', ...(body === undefined ? {} : { body }) })
          if (!statuses.includes(response.status))
            wrong.push(`${what} ${show(text)}: ${response.status} ${response.text.slice(0, 200)}`)
          if (response.status === 400 && response.json()['message'] === undefined)
            wrong.push(`${what} ${show(text)}: no reason`)
          return response
        }
        const copied = await expect(
          'copy to',
          'POST',
          `${objects}/copy`,
          { bucketId: 'docs', sourceKey: 'source', destinationKey: text, destinationBucket: 'other' },
          [200, 400],
        )
        if (copied.status === 200) {
          made.add(text)
          if (copied.json()['Key'] !== `other/${text}`) wrong.push(`copy to ${show(text)}: ${copied.text}`)
        }
        await expect(
          'move from',
          'POST',
          `${objects}/move`,
          { bucketId: 'docs', sourceKey: text, destinationKey: 'nowhere' },
          [400, 404],
        )
        await expect(
          'move in',
          'POST',
          `${objects}/move`,
          { bucketId: text, sourceKey: 'a', destinationKey: 'b' },
          [400, 404],
        )
        await expect(
          'copy into',
          'POST',
          `${objects}/copy`,
          { bucketId: 'docs', sourceKey: 'source', destinationKey: 'b', destinationBucket: text },
          [400, 404],
        )
        await expect('remove', 'DELETE', `${objects}/docs`, { prefixes: [text] }, [200, 400])
        await expect('sign', 'POST', `${objects}/sign/docs`, { paths: [text] }, [200, 400])
        await expect('list', 'POST', `${objects}/list/docs`, { prefix: text, search: text }, [200, 400])
        await expect('list-v2', 'POST', `${objects}/list-v2/docs`, { prefix: text, with_delimiter: true }, [200, 400])
        await expect('cursor', 'POST', `${objects}/list-v2/docs`, { cursor: text }, [200, 400])
        const isName = /^[a-z0-9][a-z0-9-]{1,61}[a-z0-9]$/.test(text)
        await expect('bucket', 'POST', '/storage/v1/bucket', { name: text }, isName ? [201] : [400])
        if (isName) buckets.add(text)
        for (const form of ['encoded', 'double'] as const) {
          const target = written(text, form)
          if (target === '' || target.includes('/')) continue
          await expect(
            'show bucket',
            'GET',
            `/storage/v1/bucket/${target}`,
            undefined,
            isName ? [200] : [400, 404, 414],
          )
          await expect('object in bucket', 'GET', `${objects}/${target}/a`, undefined, [400, 404, 414])
          await expect('search bucket', 'GET', `/storage/v1/bucket?search=${target}`, undefined, [200, 400])
        }
      })
      t.same(wrong, [])
      t.same(await keysOf(tenant, 'other'), sorted(made))
      t.same(
        (
          await tenant.rows(
            "select name from storage_buckets where name not in ('docs', 'other', 'system') order by name collate \"C\"",
          )
        ).map(({ name }) => name),
        [...buckets].sort(),
      )
      t.same(
        (await namesBelow(runtime.directory)).filter((name) => !ofTheStore.test(name)),
        [],
      )
    },
  )

  t.same(runtime.errors, [], 'no internal error occurred')
})

t.test('Paths through the gateway are returned byte for byte', { timeout: 600_000 }, async (t) => {
  const platform = await startPlatform()
  t.teardown(() => platform.stop())
  await platform.startControlPlane()
  const { status, body } = await platform.call(
    'POST',
    '/v1/tenants',
    { name: 'acme', plan: 'Free', region: 'local' },
    { prefer: 'wait=30' },
  )
  if (status !== 201) throw new Error(JSON.stringify(body))
  const { secret_key: key } = body['keys'] as { secret_key: string }
  const call = async (method: string, path: string, body: object) =>
    (
      await platform.tenantCall('acme', method, path, { key, body: JSON.stringify(body), type: 'application/json' })
    ).json() as Promise<Record<string, unknown>>
  await call('POST', '/storage/v1/bucket', { name: 'docs' })
  const port = Number(new URL(platform.gatewayUrl).port)
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'text/plain' }
  const paths = await uploadAll(t, some(corpus, 3), (target, bytes) =>
    requestRaw(port, 'POST', `/t/acme${objects}/docs/${target}`, headers, bytes),
  )
  const listed = (await call('POST', `${objects}/list-v2/docs`, { limit: 1000 })) as {
    objects: { key: string }[]
    hasNext: boolean
  }
  const sorted = [...paths].sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)))
  t.same(
    listed.objects.map(({ key }) => key),
    sorted.slice(0, 1000),
    'all of them are listed, byte for byte',
  )
  const wrong: string[] = []
  await allOf(some(sorted, 5), async (path) => {
    const response = await requestRaw(port, 'GET', `/t/acme${objects}/docs/${encoded(path)}`, headers, Buffer.alloc(0))
    if (response.status !== 200 || !response.body.includes(path))
      wrong.push(`${show(path)}: ${response.status} ${response.body.slice(0, 100)}`)
  })
  t.same(wrong, [], 'and read')
  t.same(
    (await namesBelow(platform.blobs)).filter((name) => !ofTheStore.test(name)),
    [],
    'no text has become the name of a file',
  )
  t.notMatch(platform.output(), /"level":(?:50|60)/, 'no internal error occurred')
})
