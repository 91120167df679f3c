// Objects as the specification has them (2.2, 4.2, 5, 6, 7, 8): what is stored, who may do what, what is refused and leaves nothing.
import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { connect } from 'node:net'
import t, { type Test } from 'tap'
import { startRuntime, type Answer, type TestTenant } from '#test/support/runtime.ts'

const objects = '/storage/v1/object'
const text = { 'content-type': 'text/plain' }
const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/
const iso = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3}Z$/

function same(t: Test, answer: Answer, status: number, code: string) {
  t.equal(answer.status, status, answer.text)
  t.match(answer.json(), { statusCode: String(status), error: String, message: String, code })
}

async function bucket(tenant: TestTenant, name: string, more: object = {}, who = 'u1'): Promise<void> {
  const answer = await tenant.ask('POST', '/storage/v1/bucket', { as: who, body: { name, ...more } })
  if (answer.status !== 201) throw new Error(answer.text)
}

/** `nobody` has no token. */
const put = (
  tenant: TestTenant,
  target: string,
  body: Buffer | string | Buffer[],
  who = 'u1',
  headers: Record<string, string> = text,
) => tenant.ask('POST', `${objects}/${target}`, { as: who === 'nobody' ? undefined : who, body, headers })
const get = (tenant: TestTenant, target: string, who = 'u1') =>
  tenant.ask('GET', `${objects}/${target}`, { as: who === 'nobody' ? undefined : who })

/** Everything that storage keeps of a tenant, as the database and the disk have it. */
async function kept(tenant: TestTenant) {
  const [row] = await tenant.rows(
    `select (select count(*) from storage_objects)::int as objects, (select coalesce(sum(size), 0) from storage_objects)::int as bytes,
       (select count(*) from blob_intents)::int as intents,
       file_bytes::int, file_count::int, reserved_bytes::int as reserved from storage_usage`,
  )
  return { ...row, files: (await tenant.files()).length }
}

const nothing = { objects: 0, bytes: 0, intents: 0, file_bytes: 0, file_count: 0, reserved: 0, files: 0 }

t.test('objects', async (t) => {
  const runtime = await startRuntime(t)
  const settled = () => runtime.storage.idle()

  t.test('are stored, read back, overwritten and deleted, file and metadata together', async (t) => {
    const tenant = await runtime.addTenant()
    await bucket(tenant, 'docs')
    same(t, await put(tenant, 'nowhere/a', 'x'), 404, 'NoSuchBucket')
    t.same(await kept(tenant), nothing, 'no bucket is made by an upload')
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
    const part = await tenant.ask('GET', `${objects}/docs/in/a%20folder/b.bin`, {
      as: 'u1',
      headers: { range: 'bytes=100-199' },
    })
    t.equal(part.status, 206)
    t.ok(part.bytes.equals(bytes.subarray(100, 200)))
    const known = await tenant.ask('GET', `${objects}/docs/in/a%20folder/b.bin`, {
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
    t.same(await kept(tenant), {
      objects: 1,
      bytes: 3,
      intents: 0,
      file_bytes: 3,
      file_count: 1,
      reserved: 0,
      files: 1,
    })
    t.notOk((await tenant.files()).includes(first ?? ''), 'the former file is gone')
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
      'a length that is not declared',
    )

    for (const path of ['in/a%20folder/b.bin', 'empty', 'chunks']) {
      t.equal((await tenant.ask('DELETE', `${objects}/docs/${path}`, { as: 'u1' })).status, 200)
    }
    same(t, await tenant.ask('DELETE', `${objects}/docs/empty`, { as: 'u1' }), 404, 'NoSuchKey')
    same(t, await get(tenant, 'docs/empty'), 404, 'NoSuchKey')
    await settled()
    t.same(await kept(tenant), nothing, 'nothing is left')
  })

  t.test('written at once to one path end as one of the writes, whole', async (t) => {
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
    const answers = await Promise.all(bodies.map((body) => put(tenant, 'docs/a', body)))
    t.same(new Set(answers.map(({ status }) => status)), new Set([200]))
    t.same(await readers, [], 'a reader never gets a mixture')
    const { bytes } = await get(tenant, 'docs/a')
    t.ok(bodies.some((body) => body.equals(bytes)))
    await settled()
    t.same(await kept(tenant), {
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
      'without overwriting, one of them',
    )
    await settled()
    t.match(await kept(tenant), { objects: 2, intents: 0, reserved: 0, files: 2 })
  })

  t.test('too large or of a wrong type are refused before a byte is kept', async (t) => {
    const tenant = await runtime.addTenant({ limits: { max_upload_bytes: 2_000 } })
    await bucket(tenant, 'small', { max_file_size: 1_000 })
    await bucket(tenant, 'large', { max_file_size: 5_000 })
    await bucket(tenant, 'plain')
    for (const [target, most] of [
      ['small', 1_000],
      ['large', 2_000],
      ['plain', 2_000],
    ] as const) {
      t.equal((await put(tenant, `${target}/fits`, Buffer.alloc(most))).status, 200, `${target}: ${most} bytes`)
      same(t, await put(tenant, `${target}/over`, Buffer.alloc(most + 1)), 413, 'FILE_TOO_LARGE')
      same(t, await put(tenant, `${target}/over`, [Buffer.alloc(most), Buffer.alloc(1)]), 413, 'FILE_TOO_LARGE')
      same(t, await put(tenant, `${target}/fits`, Buffer.alloc(most + 1)), 413, 'FILE_TOO_LARGE')
      t.equal((await get(tenant, `${target}/fits`)).bytes.length, most, 'what was there stays')
    }
    await settled()
    t.same(await kept(tenant), {
      objects: 3,
      bytes: 5_000,
      intents: 0,
      file_bytes: 5_000,
      file_count: 3,
      reserved: 0,
      files: 3,
    })

    // Neither answer can have read a body, because none is ever sent.
    await bucket(tenant, 'images', { allowed_mime_types: ['image/*'] })
    for (const [length, type, status] of [
      [1_000_000_000, 'image/png', 413],
      [10, 'text/html', 415],
    ] as const) {
      const socket = connect(tenant.port, '127.0.0.1')
      const { authorization = '' } = tenant.as('u1')
      socket.write(`POST ${objects}/images/a HTTP/1.1\r\nhost: x\r\nauthorization: ${authorization}\r\n`)
      socket.write(`content-type: ${type}\r\ncontent-length: ${length}\r\n\r\n`)
      const [answer] = (await once(socket, 'data')) as [Buffer]
      socket.destroy()
      t.match(answer.toString(), new RegExp(`^HTTP/1.1 ${status} `), `${status} by the headers alone`)
    }
    t.match(await kept(tenant), { objects: 3, intents: 0, reserved: 0, files: 3 })

    const cut = connect(tenant.port, '127.0.0.1')
    cut.write(
      `POST ${objects}/plain/cut HTTP/1.1\r\nhost: x\r\nauthorization: ${tenant.as('u1')['authorization'] ?? ''}\r\n`,
    )
    cut.write('content-type: text/plain\r\ncontent-length: 1000\r\n\r\nhalf')
    for (let tries = 0; (await kept(tenant)).files === 3 && tries < 1000; tries++)
      await new Promise((resolve) => setTimeout(resolve, 5))
    cut.destroy()
    for (let tries = 0; (await kept(tenant)).files > 3 && tries < 1000; tries++)
      await new Promise((resolve) => setTimeout(resolve, 5))
    await settled()
    t.match(
      await kept(tenant),
      { objects: 3, intents: 0, reserved: 0, files: 3 },
      'of an upload that is cut short nothing is left',
    )
  })

  t.test('match the types of their bucket exactly, or by what stands before the asterisk', async (t) => {
    const tenant = await runtime.addTenant()
    const matches: [allowed: string[], type: string, status: number][] = [
      [[], 'application/anything', 200],
      [['image/png'], 'image/png', 200],
      [['image/png'], 'image/jpeg', 415],
      [['image/*'], 'image/jpeg', 200],
      [['image/*'], 'imagex/jpeg', 415],
      [['image/*'], 'text/plain', 415],
      [['text/plain', 'image/*'], 'text/plain', 200],
      [['text/plain'], 'text/plain2', 415],
      [['text/plain'], 'text/plain; charset=utf-8', 415],
      [['text/*'], 'text/plain; charset=utf-8', 200],
      [['image/png'], 'IMAGE/PNG', 415],
    ]
    for (const [n, [allowed, type, status]] of matches.entries()) {
      await bucket(tenant, `mime-${n}`, { allowed_mime_types: allowed })
      const answer = await put(tenant, `mime-${n}/a`, 'x', 'u1', { 'content-type': type })
      t.equal(answer.status, status, `${type} where ${allowed.join(', ')} is allowed`)
      if (status === 415) t.match(answer.json(), { code: 'MIME_NOT_ALLOWED', error: 'invalid_mime_type' })
    }
    for (const type of ['nonsense', 'a/b/c', 'text/', '/plain', 'text/plain;', 'text/<script>']) {
      t.equal((await put(tenant, 'mime-0/b', 'x', 'u1', { 'content-type': type })).status, 400, type)
    }
    await settled()
    t.match(await kept(tenant), {
      objects: matches.filter(([, , status]) => status === 200).length,
      intents: 0,
      reserved: 0,
    })
  })

  t.test('are open to whom the policy of their bucket says, and denials change nothing', async (t) => {
    const tenant = await runtime.addTenant()
    const actors = ['u1', 'u2', undefined, 'service'] as const
    //                                owner, other, anonymous, service
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
      for (const [n, who] of actors.entries()) {
        const by = `${policy} by ${who ?? 'nobody'}`
        const restore = () => put(tenant, `${policy}/mine`, 'original')
        await restore()
        for (const way of [
          `${objects}/${policy}/mine`,
          `${objects}/authenticated/${policy}/mine`,
          `${objects}/info/${policy}/mine`,
        ]) {
          t.equal((await tenant.ask('GET', way, { as: who })).status, rows['read']?.[n], `${by}: GET ${way}`)
        }
        t.equal(
          (await tenant.ask('HEAD', `${objects}/${policy}/mine`, { as: who })).status,
          rows['read']?.[n],
          `${by}: HEAD`,
        )
        t.equal(
          (await tenant.ask('POST', `${objects}/sign/${policy}/mine?expires_in=60`, { as: who })).status,
          rows['read']?.[n],
          `${by}: sign`,
        )
        t.equal(
          (await tenant.ask('POST', `${objects}/list/${policy}`, { as: who, body: {} })).status,
          rows['read']?.[n],
          `${by}: list`,
        )
        t.equal(
          (await tenant.ask('GET', `${objects}/public/${policy}/mine`, { as: who })).status,
          policy === 'public' ? 200 : 404,
          `${by}: the public way`,
        )
        t.equal(
          (await put(tenant, `${policy}/by-${n}`, 'x', who ?? 'nobody')).status,
          rows['write']?.[n],
          `${by}: write`,
        )
        for (const method of ['POST', 'PUT']) {
          const { status } = await tenant.ask(method, `${objects}/${policy}/mine`, {
            as: who,
            body: 'changed',
            headers: text,
          })
          t.equal(status, rows['overwrite']?.[n], `${by}: overwrite`)
          t.equal(
            (await get(tenant, `${policy}/mine`)).text,
            rows['overwrite']?.[n] === 200 ? 'changed' : 'original',
            `${by}: what is there then`,
          )
          await restore()
        }
        const moved = await tenant.ask('POST', `${objects}/move`, {
          as: who,
          body: { bucketId: policy, sourceKey: 'mine', destinationKey: `moved-${n}` },
        })
        t.equal(moved.status, rows['overwrite']?.[n], `${by}: move`)
        await restore()
        const many = await tenant.ask('DELETE', `${objects}/${policy}`, { as: who, body: { prefixes: ['mine'] } })
        t.ok(
          rows['delete']?.[n] === 200 ? many.list().length === 1 : many.status >= 400 || many.list().length === 0,
          `${by}: delete of many: ${many.text}`,
        )
        t.equal((await get(tenant, `${policy}/mine`)).status, rows['delete']?.[n] === 200 ? 404 : 200)
        await restore()
        t.equal(
          (await tenant.ask('DELETE', `${objects}/${policy}/mine`, { as: who })).status,
          rows['delete']?.[n],
          `${by}: delete`,
        )
        t.equal((await get(tenant, `${policy}/mine`)).status, rows['delete']?.[n] === 200 ? 404 : 200)
      }
    }
    t.equal(
      (await put(tenant, 'authenticated/theirs', '1', 'u2')).json()['owner_id'],
      'u2',
      "in an authenticated bucket each user's objects are the own",
    )
    t.equal((await put(tenant, 'authenticated/theirs', '2', 'u2')).status, 200)
    t.equal((await put(tenant, 'authenticated/theirs', '3', 'u3')).status, 403)
    t.equal((await tenant.ask('DELETE', `${objects}/authenticated/theirs`, { as: 'u2' })).status, 200)
    await tenant.ask('PATCH', '/storage/v1/bucket/public', { as: 'u1', body: { policy: 'private' } })
    await put(tenant, 'public/mine', 'x')
    t.equal((await get(tenant, 'public/mine', 'nobody')).status, 404, 'a policy holds from its change on')
  })

  t.test('that were stored stand in the event log, with the fields of the specification and no more', async (t) => {
    const tenant = await runtime.addTenant()
    await bucket(tenant, 'docs', { max_file_size: 3 })
    const { created_at: created } = (await put(tenant, 'docs/a/b.txt', 'x')).json()
    await put(tenant, 'docs/refused', 'much')
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
    await tenant.ask('DELETE', `${objects}/docs/a/b.txt`, { as: 'u1' })
    const all = await tenant.rows("select type from event_log where type like 'storage.object.%' order by seq")
    t.same(
      all.map(({ type }) => type),
      ['storage.object.created', 'storage.object.created', 'storage.object.deleted'],
    )
    const events = (who: string | undefined) =>
      tenant.ask('GET', '/rest/v1/event_log?type=like.storage.object.*', { as: who })
    for (const [who, seen] of [
      ['u1', 3],
      ['u2', 0],
      [undefined, 0],
      ['service', 3],
    ] as const) {
      t.equal((await events(who)).list().length, seen, who ?? 'nobody')
    }
  })

  t.test('fill the quota to the byte and not beyond, also many at once', async (t) => {
    const tenant = await runtime.addTenant({ limits: { file_bytes: 1_000 } })
    await bucket(tenant, 'docs')
    t.equal((await put(tenant, 'docs/a', Buffer.alloc(999))).status, 200)
    same(t, await put(tenant, 'docs/b', Buffer.alloc(2)), 413, 'QUOTA_EXCEEDED')
    t.equal((await put(tenant, 'docs/b', [Buffer.alloc(2)])).status, 413)
    t.equal((await put(tenant, 'docs/b', [Buffer.alloc(1)])).status, 200, 'the last byte')
    same(t, await put(tenant, 'docs/c', Buffer.alloc(1)), 413, 'QUOTA_EXCEEDED')
    t.equal((await put(tenant, 'docs/c', '')).status, 200, 'nothing fits into nothing')
    const copy = await tenant.ask('POST', `${objects}/copy`, {
      as: 'u1',
      body: { bucketId: 'docs', sourceKey: 'b', destinationKey: 'd' },
    })
    same(t, copy, 413, 'QUOTA_EXCEEDED')
    await settled()
    t.same(await kept(tenant), {
      objects: 3,
      bytes: 1_000,
      intents: 0,
      file_bytes: 1_000,
      file_count: 3,
      reserved: 0,
      files: 3,
    })
    t.equal((await tenant.ask('DELETE', `${objects}/docs/a`, { as: 'u1' })).status, 200)
    const many = await Promise.all(
      Array.from({ length: 20 }, (_, n) => put(tenant, `docs/many-${n}`, Buffer.alloc(111))),
    )
    t.same(many.map(({ status }) => status).sort(), [
      ...Array.from({ length: 9 }, () => 200),
      ...Array.from({ length: 11 }, () => 413),
    ])
    await settled()
    t.match(await kept(tenant), { bytes: 1_000, intents: 0, file_bytes: 1_000, reserved: 0, files: 11 })
    tenant.change({ limits: { ...tenant.manifest.limits, file_bytes: 1_001 } })
    t.equal((await put(tenant, 'docs/e', Buffer.alloc(1))).status, 200, 'a larger plan holds at once')
  })

  t.test('have any path that is one, byte for byte, and no path makes an error of ours', async (t) => {
    const tenant = await runtime.addTenant()
    await bucket(tenant, 'docs')
    const long = 'x'.repeat(1_024)
    const good = [
      'a',
      'a.txt',
      '...',
      '.hidden',
      'a..b',
      '..a',
      'a/...',
      'a b',
      ' ',
      'a+b',
      'a%2bb',
      'a&b=c',
      'a?b',
      'a#b',
      "a'b",
      'a"b',
      'a;b',
      'a:b',
      '%',
      '%2e%2e',
      '%00',
      '*',
      '~',
      '|',
      '<b>',
      '$(x)',
      '{x}',
      'ä',
      'a\u0308',
      '日本語/ファイル',
      '💩',
      '\u200b',
      '\u202e',
      '\ufeff',
      'sign',
      'public/x',
      'list',
      'a/upload/sign',
      'CON',
      'a'.repeat(255),
      'b'.repeat(300),
      long,
      'é'.repeat(512),
      `${'d/'.repeat(511)}ee`,
    ]
    for (const path of good) {
      const encoded = path.split('/').map(encodeURIComponent).join('/')
      const shown = path.slice(0, 40)
      const stored = await put(tenant, `docs/${encoded}`, path)
      t.equal(stored.status, 200, `${shown}: ${stored.text}`)
      t.equal(stored.json()['path'], path, shown)
      t.equal((await get(tenant, `docs/${encoded}`)).text, path, shown)
    }
    const [row] = await tenant.rows('select count(*)::int as n from storage_objects')
    t.equal(row?.['n'], good.length, 'no two of them are one')
    t.ok(
      (await tenant.files()).every((file) => uuid.test(file)),
      'and none is the name of a file',
    )

    const raw = [
      '..',
      '../x',
      'a/../b',
      'a/..',
      './a',
      'a/.',
      '%2e%2e',
      '%2e%2e/x',
      'a/%2E%2E/b',
      '.%2e',
      'a%2f..%2fb',
      '..%2f..%2fetc%2fpasswd',
      '%2e%2e%2f',
      '..;/x/..',
      '%',
      '%4',
      '%zz',
      '%00',
      'a%00b',
      'a%00.png',
      '%0a',
      '%0d%0ax:%20y',
      '%7f',
      '%c2%80',
      '%1b%5b0m',
      'a\\b',
      'a%5cb',
      '..%5c..',
      '%5c',
      '',
      '/',
      '//',
      'a//b',
      'a/',
      '/a',
      '%2f',
      'a%2f',
      '%ff',
      '%c3%28',
      '%ed%a0%80',
      '%f8%88%80%80%80',
      '%c0%af',
      '%c0%ae%c0%ae',
      `${long}x`,
      `${'%c3%a9'.repeat(512)}x`,
      'x'.repeat(9_000),
      `${'a/'.repeat(600)}b`,
      '%u0041',
      'a%',
    ]
    const before = await tenant.rows('select path from storage_objects order by path')
    for (const path of raw) {
      const shown = path.slice(0, 40)
      for (const [method, at] of [
        ['GET', 'docs'],
        ['HEAD', 'docs'],
        ['DELETE', 'docs'],
        ['PUT', 'docs'],
        ['POST', 'docs'],
        ['POST', 'sign/docs'],
        ['POST', 'upload/sign/docs'],
        ['GET', 'info/docs'],
        ['GET', 'public/docs'],
        ['GET', 'authenticated/docs'],
        ['GET', 'sign/docs'],
      ] as const) {
        const { status } = await tenant.ask(method, `${objects}/${at}/${path}`, {
          as: 'u1',
          ...(method === 'PUT' || method === 'POST' ? { body: 'x', headers: text } : {}),
        })
        t.ok(status >= 400 && status < 500, `${method} ${at}/${shown}: ${status}`)
      }
      const { status } = await tenant.ask('GET', `${objects}/${path}/a`, { as: 'u1' })
      t.ok(status >= 400 && status < 500, `a bucket ${shown}: ${status}`)
    }
    t.same(await tenant.rows('select path from storage_objects order by path'), before, 'nothing came and nothing went')

    for (const path of ['..', 'a/../b', '', 'a\0b', '\ud800', 'a\\b', `${long}x`]) {
      const asked = [
        await tenant.ask('POST', `${objects}/move`, {
          as: 'u1',
          body: { bucketId: 'docs', sourceKey: 'a', destinationKey: path },
        }),
        await tenant.ask('POST', `${objects}/copy`, {
          as: 'u1',
          body: { bucketId: 'docs', sourceKey: 'a', destinationKey: path },
        }),
        await tenant.ask('POST', `${objects}/move`, {
          as: 'u1',
          body: { bucketId: 'docs', sourceKey: path, destinationKey: 'b' },
        }),
      ]
      t.ok(
        asked.every(({ status }) => status >= 400 && status < 500),
        `${JSON.stringify(path.slice(0, 20))}: ${asked.map(({ status }) => status).join(' ')}`,
      )
      const others = [
        await tenant.ask('DELETE', `${objects}/docs`, { as: 'u1', body: { prefixes: [path] } }),
        await tenant.ask('POST', `${objects}/list/docs`, {
          as: 'u1',
          body: { prefix: path, search: path.slice(0, 100) },
        }),
        await tenant.ask('POST', `${objects}/sign/docs`, { as: 'u1', body: { expiresIn: 60, paths: [path] } }),
      ]
      t.ok(
        others.every(({ status }) => status < 500),
        `${JSON.stringify(path.slice(0, 20))}: ${others.map(({ status }) => status).join(' ')}`,
      )
    }
    t.same(await tenant.rows('select path from storage_objects order by path'), before, 'still')
  })

  t.test('come in forms too; one that is broken or breaks off is refused, and leaves nothing', async (t) => {
    const tenant = await runtime.addTenant()
    await bucket(tenant, 'docs')
    const part = (type: string, body: string) =>
      `--x\r\ncontent-disposition: form-data; name=""; filename="f"\r\n${type}\r\n${body}`
    const form = { 'content-type': 'multipart/form-data; boundary=x' }
    const field = '--x\r\ncontent-disposition: form-data; name="cacheControl"\r\n\r\n60\r\n'
    const whole = await put(
      tenant,
      'docs/a',
      `${field}${part('content-type: text/css\r\n', 'body{}')}\r\n--x--\r\n`,
      'u1',
      form,
    )
    t.match([whole.status, whole.json()], [200, { size: 6, content_type: 'text/css' }])
    t.match(await get(tenant, 'docs/a'), {
      text: 'body{}',
      headers: { 'content-type': 'text/css', 'cache-control': 'max-age=60' },
    })
    const end = '\r\n--x--\r\n'
    const broken = [
      '',
      '--x--\r\n',
      `${field}--x--\r\n`,
      'nonsense',
      part('', 'breaks off'),
      part('', 'breaks off\r\n--x'),
      part('', '').slice(0, 20),
      part('content-type: <script>\r\n', `x${end}`),
      part('content-type: text/a\u0001b\r\n', `x${end}`),
      `${part('', 'x\r\n')}${field.replace('cacheControl', 'metadata')}--x--\r\n`,
    ]
    for (const body of broken) {
      const answer = await put(tenant, 'docs/b', body, 'u1', form)
      t.equal(answer.status, 400, `${JSON.stringify(body.slice(-40))}: ${answer.text}`)
    }
    for (const type of ['multipart/form-data', 'multipart/form-data; boundary=y']) {
      t.equal((await put(tenant, 'docs/b', part('', `x${end}`), 'u1', { 'content-type': type })).status, 400, type)
    }
    t.equal(
      (await put(tenant, 'docs/b', Buffer.concat([Buffer.from(part('', '')), Buffer.alloc(500_000)]), 'u1', form))
        .status,
      400,
      'a long one that breaks off',
    )

    const cut = connect(tenant.port, '127.0.0.1')
    const { authorization = '' } = tenant.as('u1')
    cut.write(`POST ${objects}/docs/b HTTP/1.1\r\nhost: x\r\nauthorization: ${authorization}\r\n`)
    cut.write(`content-type: ${form['content-type']}\r\ncontent-length: 9999\r\n\r\n${part('', 'half')}`)
    for (let tries = 0; (await kept(tenant)).files === 1 && tries < 1000; tries++)
      await new Promise((resolve) => setTimeout(resolve, 5))
    cut.destroy()
    for (let tries = 0; (await kept(tenant)).files > 1 && tries < 1000; tries++)
      await new Promise((resolve) => setTimeout(resolve, 5))
    await settled()
    t.same(await kept(tenant), {
      objects: 1,
      bytes: 6,
      intents: 0,
      file_bytes: 6,
      file_count: 1,
      reserved: 0,
      files: 1,
    })
  })

  t.test('serve an unmodified client', async (t) => {
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
    t.same(await kept(tenant), nothing)
  })

  t.same(runtime.problems, [], 'none of it was an error of ours')
})
