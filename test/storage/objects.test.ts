// Objects as the specification defines them (2.2, 4.2, 5, 6, 7, 8): stored data, rights, events and quotas.
import { createHash, randomBytes } from 'node:crypto'
import t from 'tap'
import { startRuntime } from '#test/support/runtime.ts'
import { storedRows, nothing } from './support/stored-rows.ts'
import { bucket, get, iso, objects, put, same, text, uuid } from './support/objects.ts'

t.test('Objects', async (t) => {
  const runtime = await startRuntime(t)
  const settled = () => runtime.storage.idle()

  t.test('Objects are stored, read, overwritten and deleted, with file and metadata together', async (t) => {
    const tenant = await runtime.addTenant()
    await bucket(tenant, 'docs')
    same(t, await put(tenant, 'nowhere/a', 'x'), 404, 'NoSuchBucket')
    t.same(await storedRows(tenant), nothing, 'an upload creates no bucket')
    const bytes = randomBytes(300_000)
    const stored = await put(tenant, 'docs/in/a%20folder/b.bin', bytes, 'u1', { 'content-type': 'application/x-thing' })
    t.equal(stored.status, 200)
    t.match(stored.json(), {
      id: uuid,
      bucket: 'docs',
      path: 'in/a folder/b.bin',
      size: 300_000,
      content_type: 'application/x-thing',
      owner_id: 'u1',
      created_at: iso,
    })
    const read = await get(tenant, 'docs/in/a%20folder/b.bin')
    t.equal(read.status, 200)
    t.ok(read.bytes.equals(bytes))
    t.match(read.headers, {
      'content-type': 'application/x-thing',
      'content-length': '300000',
      etag: `"${createHash('sha256').update(bytes).digest('hex')}"`,
      'x-content-type-options': 'nosniff',
    })
    const part = await tenant.request('GET', `${objects}/docs/in/a%20folder/b.bin`, {
      as: 'u1',
      headers: { range: 'bytes=100-199' },
    })
    t.equal(part.status, 206)
    t.ok(part.bytes.equals(bytes.subarray(100, 200)))
    const known = await tenant.request('GET', `${objects}/docs/in/a%20folder/b.bin`, {
      as: 'u1',
      headers: { 'if-none-match': String(read.headers.etag) },
    })
    t.same([known.status, known.bytes.length], [304, 0])

    const [first] = await tenant.files()
    t.match(
      (await put(tenant, 'docs/in/a%20folder/b.bin', 'new', 'u1')).json(),
      { id: stored.json()['id'], size: 3, content_type: 'text/plain' },
      'the same object',
    )
    t.equal((await get(tenant, 'docs/in/a%20folder/b.bin')).text, 'new', 'the last write wins')
    await settled()
    t.same(await storedRows(tenant), {
      objects: 1,
      bytes: 3,
      intents: 0,
      file_bytes: 3,
      file_count: 1,
      reserved: 0,
      files: 1,
    })
    t.notOk((await tenant.files()).includes(first ?? ''), 'the former file is deleted')
    same(
      t,
      await put(tenant, 'docs/in/a%20folder/b.bin', 'no', 'u1', { ...text, 'x-upsert': 'false' }),
      409,
      'KeyAlreadyExists',
    )
    t.equal((await get(tenant, 'docs/in/a%20folder/b.bin')).text, 'new')

    t.equal((await put(tenant, 'docs/empty', '')).json()['size'], 0)
    t.same(
      [(await get(tenant, 'docs/empty')).status, (await get(tenant, 'docs/empty')).bytes.length],
      [200, 0],
      'an empty file',
    )
    t.equal(
      (await put(tenant, 'docs/chunks', [Buffer.from('a'), Buffer.alloc(70_000, 'b'), Buffer.from('c')])).json()[
        'size'
      ],
      70_002,
      'an undeclared length',
    )

    for (const path of ['in/a%20folder/b.bin', 'empty', 'chunks']) {
      t.equal((await tenant.request('DELETE', `${objects}/docs/${path}`, { as: 'u1' })).status, 200)
    }
    same(t, await tenant.request('DELETE', `${objects}/docs/empty`, { as: 'u1' }), 404, 'NoSuchKey')
    same(t, await get(tenant, 'docs/empty'), 404, 'NoSuchKey')
    await settled()
    t.same(await storedRows(tenant), nothing, 'nothing remains')
  })

  t.test('Concurrent writes to one path end as one whole write', async (t) => {
    const tenant = await runtime.addTenant()
    await bucket(tenant, 'docs')
    const bodies = Array.from({ length: 12 }, (_, n) => Buffer.alloc(10_000 + n, n))
    const readers = (async () => {
      const torn: number[] = []
      for (let n = 0; n < 20; n++) {
        const { status, bytes } = await get(tenant, 'docs/a')
        if (status !== 404 && !bodies.some((body) => body.equals(bytes))) torn.push(status)
      }
      return torn
    })()
    const responses = await Promise.all(bodies.map((body) => put(tenant, 'docs/a', body)))
    t.same(new Set(responses.map(({ status }) => status)), new Set([200]))
    t.same(await readers, [], 'a reader never gets a mixture')
    const { bytes } = await get(tenant, 'docs/a')
    t.ok(bodies.some((body) => body.equals(bytes)))
    await settled()
    t.same(await storedRows(tenant), {
      objects: 1,
      bytes: bytes.length,
      intents: 0,
      file_bytes: bytes.length,
      file_count: 1,
      reserved: 0,
      files: 1,
    })
    const fresh = await Promise.all(
      bodies.map((body) => put(tenant, 'docs/once', body, 'u1', { ...text, 'x-upsert': 'false' })),
    )
    t.same(
      fresh.map(({ status }) => status).sort(),
      [200, ...Array.from({ length: 11 }, () => 409)],
      'without overwriting, one of them succeeds',
    )
    await settled()
    t.match(await storedRows(tenant), { objects: 2, intents: 0, reserved: 0, files: 2 })
  })

  t.test('The policy of the bucket decides who has access, and a denied request changes nothing', async (t) => {
    const tenant = await runtime.addTenant()
    const actors = ['u1', 'u2', undefined, 'service'] as const
    // In the order: owner, other, anonymous, service.
    const expected: Record<string, Record<string, number[]>> = {
      public: {
        read: [200, 200, 200, 200],
        write: [200, 403, 401, 200],
        overwrite: [200, 403, 401, 200],
        delete: [200, 403, 401, 200],
      },
      private: {
        read: [200, 404, 404, 200],
        write: [200, 404, 401, 200],
        overwrite: [200, 404, 401, 200],
        delete: [200, 404, 401, 200],
      },
      authenticated: {
        read: [200, 200, 404, 200],
        write: [200, 200, 401, 200],
        overwrite: [200, 403, 401, 200],
        delete: [200, 403, 401, 200],
      },
    }
    for (const [policy, rows] of Object.entries(expected)) {
      await bucket(tenant, policy, { policy })
      for (const [n, caller] of actors.entries()) {
        const by = `${policy} by ${caller ?? 'anonymous'}`
        const restore = () => put(tenant, `${policy}/mine`, 'original')
        await restore()
        for (const way of [
          `${objects}/${policy}/mine`,
          `${objects}/authenticated/${policy}/mine`,
          `${objects}/info/${policy}/mine`,
        ]) {
          t.equal((await tenant.request('GET', way, { as: caller })).status, rows['read']?.[n], `${by}: GET ${way}`)
        }
        t.equal(
          (await tenant.request('HEAD', `${objects}/${policy}/mine`, { as: caller })).status,
          rows['read']?.[n],
          `${by}: HEAD`,
        )
        t.equal(
          (await tenant.request('POST', `${objects}/sign/${policy}/mine?expires_in=60`, { as: caller })).status,
          rows['read']?.[n],
          `${by}: sign`,
        )
        t.equal(
          (await tenant.request('POST', `${objects}/list/${policy}`, { as: caller, body: {} })).status,
          rows['read']?.[n],
          `${by}: list`,
        )
        t.equal(
          (await tenant.request('GET', `${objects}/public/${policy}/mine`, { as: caller })).status,
          policy === 'public' ? 200 : 404,
          `${by}: the public path`,
        )
        t.equal(
          (await put(tenant, `${policy}/by-${n}`, 'x', caller ?? 'anonymous')).status,
          rows['write']?.[n],
          `${by}: write`,
        )
        for (const method of ['POST', 'PUT']) {
          const { status } = await tenant.request(method, `${objects}/${policy}/mine`, {
            as: caller,
            body: 'changed',
            headers: text,
          })
          t.equal(status, rows['overwrite']?.[n], `${by}: overwrite`)
          t.equal(
            (await get(tenant, `${policy}/mine`)).text,
            rows['overwrite']?.[n] === 200 ? 'changed' : 'original',
            `${by}: the state afterwards`,
          )
          await restore()
        }
        const moved = await tenant.request('POST', `${objects}/move`, {
          as: caller,
          body: { bucketId: policy, sourceKey: 'mine', destinationKey: `moved-${n}` },
        })
        t.equal(moved.status, rows['overwrite']?.[n], `${by}: move`)
        await restore()
        const many = await tenant.request('DELETE', `${objects}/${policy}`, {
          as: caller,
          body: { prefixes: ['mine'] },
        })
        t.ok(
          rows['delete']?.[n] === 200 ? many.list().length === 1 : many.status >= 400 || many.list().length === 0,
          `${by}: delete of many: ${many.text}`,
        )
        t.equal((await get(tenant, `${policy}/mine`)).status, rows['delete']?.[n] === 200 ? 404 : 200)
        await restore()
        t.equal(
          (await tenant.request('DELETE', `${objects}/${policy}/mine`, { as: caller })).status,
          rows['delete']?.[n],
          `${by}: delete`,
        )
        t.equal((await get(tenant, `${policy}/mine`)).status, rows['delete']?.[n] === 200 ? 404 : 200)
      }
    }
    t.equal(
      (await put(tenant, 'authenticated/theirs', '1', 'u2')).json()['owner_id'],
      'u2',
      'in an authenticated bucket each user owns their objects',
    )
    t.equal((await put(tenant, 'authenticated/theirs', '2', 'u2')).status, 200)
    t.equal((await put(tenant, 'authenticated/theirs', '3', 'u3')).status, 403)
    t.equal((await tenant.request('DELETE', `${objects}/authenticated/theirs`, { as: 'u2' })).status, 200)
    await tenant.request('PATCH', '/storage/v1/bucket/public', { as: 'u1', body: { policy: 'private' } })
    await put(tenant, 'public/mine', 'x')
    t.equal((await get(tenant, 'public/mine', 'anonymous')).status, 404, 'a changed policy applies at once')
  })

  t.test('Stored objects appear in the event log with the fields of the specification only', async (t) => {
    const tenant = await runtime.addTenant()
    await bucket(tenant, 'docs', { max_file_size: 3 })
    const { created_at: created } = (await put(tenant, 'docs/a/b.txt', 'x')).json()
    await put(tenant, 'docs/rejected', 'much')
    const rows = await tenant.rows("select type, owner_id, payload from event_log where type like 'storage.object.%'")
    t.equal(rows.length, 1)
    const payload = rows[0]?.['payload'] as Record<string, unknown>
    const { timestamp } = payload
    t.match(rows[0], { type: 'storage.object.created', owner_id: 'u1' })
    t.same(payload, { type: 'storage.object.created', bucket: 'docs', path: 'a/b.txt', owner_id: 'u1', timestamp })
    t.match(payload['timestamp'], iso)
    t.ok(
      Math.abs(Date.parse(String(payload['timestamp'])) - Date.parse(String(created))) <= 1,
      'the time of the object itself, to the millisecond',
    )
    await put(tenant, 'docs/a/b.txt', 'y')
    await tenant.request('DELETE', `${objects}/docs/a/b.txt`, { as: 'u1' })
    const all = await tenant.rows("select type from event_log where type like 'storage.object.%' order by seq")
    t.same(
      all.map(({ type }) => type),
      ['storage.object.created', 'storage.object.created', 'storage.object.deleted'],
    )
    const events = (caller: string | undefined) =>
      tenant.request('GET', '/rest/v1/event_log?type=like.storage.object.*', { as: caller })
    for (const [caller, seen] of [
      ['u1', 3],
      ['u2', 0],
      [undefined, 0],
      ['service', 3],
    ] as const) {
      t.equal((await events(caller)).list().length, seen, caller ?? 'anonymous')
    }
  })

  t.test('The quota is filled to the byte and never exceeded, also by concurrent uploads', async (t) => {
    const tenant = await runtime.addTenant({ limits: { file_bytes: 1_000 } })
    await bucket(tenant, 'docs')
    t.equal((await put(tenant, 'docs/a', Buffer.alloc(999))).status, 200)
    same(t, await put(tenant, 'docs/b', Buffer.alloc(2)), 413, 'QUOTA_EXCEEDED')
    t.equal((await put(tenant, 'docs/b', [Buffer.alloc(2)])).status, 413)
    t.equal((await put(tenant, 'docs/b', [Buffer.alloc(1)])).status, 200, 'the last byte')
    same(t, await put(tenant, 'docs/c', Buffer.alloc(1)), 413, 'QUOTA_EXCEEDED')
    t.equal((await put(tenant, 'docs/c', '')).status, 200, 'nothing fits into a full quota')
    const copy = await tenant.request('POST', `${objects}/copy`, {
      as: 'u1',
      body: { bucketId: 'docs', sourceKey: 'b', destinationKey: 'd' },
    })
    same(t, copy, 413, 'QUOTA_EXCEEDED')
    await settled()
    t.same(await storedRows(tenant), {
      objects: 3,
      bytes: 1_000,
      intents: 0,
      file_bytes: 1_000,
      file_count: 3,
      reserved: 0,
      files: 3,
    })
    t.equal((await tenant.request('DELETE', `${objects}/docs/a`, { as: 'u1' })).status, 200)
    const many = await Promise.all(
      Array.from({ length: 20 }, (_, n) => put(tenant, `docs/many-${n}`, Buffer.alloc(111))),
    )
    t.same(many.map(({ status }) => status).sort(), [
      ...Array.from({ length: 9 }, () => 200),
      ...Array.from({ length: 11 }, () => 413),
    ])
    await settled()
    t.match(await storedRows(tenant), { bytes: 1_000, intents: 0, file_bytes: 1_000, reserved: 0, files: 11 })
    tenant.change({ limits: { ...tenant.manifest.limits, file_bytes: 1_001 } })
    t.equal((await put(tenant, 'docs/e', Buffer.alloc(1))).status, 200, 'a larger plan applies at once')
  })

  t.test('An unmodified client works with objects', async (t) => {
    const tenant = await runtime.addTenant()
    await bucket(tenant, 'docs')
    const files = tenant.client('u1').storage.from('docs')
    t.match(await files.upload('a/b.txt', new Blob(['one'], { type: 'text/plain' })), {
      data: { path: 'a/b.txt', fullPath: 'docs/a/b.txt' },
      error: null,
    })
    t.match(await files.upload('a/b.txt', 'two', { contentType: 'text/plain' }), {
      data: null,
      error: { message: 'The resource already exists' },
    })
    t.match(await files.upload('a/b.txt', 'two', { contentType: 'text/plain', upsert: true }), { error: null })
    t.equal(await (await files.download('a/b.txt')).data?.text(), 'two')
    t.match((await files.list('a')).data, [{ name: 'b.txt', metadata: { size: 3, mimetype: 'text/plain' } }])
    const { data } = await files.createSignedUrl('a/b.txt', 60)
    t.equal(await (await fetch(data?.signedUrl ?? '')).text(), 'two')
    const upload = await files.createSignedUploadUrl('c')
    t.match(
      await tenant
        .client(undefined)
        .storage.from('docs')
        .uploadToSignedUrl('c', upload.data?.token ?? '', new Blob(['three'], { type: 'text/plain' })),
      { error: null },
    )
    t.equal((await get(tenant, 'docs/c')).text, 'three')
    t.match(await tenant.client('u2').storage.from('docs').download('a/b.txt'), {
      data: null,
      error: { name: 'StorageApiError' },
    })
    t.match((await files.remove(['a/b.txt', 'c'])).data, [{ name: 'a/b.txt' }, { name: 'c' }])
    await settled()
    t.same(await storedRows(tenant), nothing)
  })

  t.same(runtime.errors, [], 'no internal error occurred')
})
