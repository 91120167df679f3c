// Objects that are rejected because of their size, type or form, and leave nothing behind.
import { once } from 'node:events'
import { connect } from 'node:net'
import t from 'tap'
import { startRuntime } from '#test/support/runtime.ts'
import { storedRows } from './support/stored-rows.ts'
import { bucket, get, objects, put, same } from './support/objects.ts'

t.test('Objects', async (t) => {
  const runtime = await startRuntime(t)
  const settled = () => runtime.storage.idle()

  t.test('An object that is too large or of a wrong type is rejected before a byte is stored', async (t) => {
    const tenant = await runtime.addTenant({ limits: { max_upload_bytes: 2_000 } })
    await bucket(tenant, 'small', { max_file_size: 1_000 })
    await bucket(tenant, 'large', { max_file_size: 5_000 })
    await bucket(tenant, 'plain')
    for (const [target, max] of [
      ['small', 1_000],
      ['large', 2_000],
      ['plain', 2_000],
    ] as const) {
      t.equal((await put(tenant, `${target}/fits`, Buffer.alloc(max))).status, 200, `${target}: ${max} bytes`)
      same(t, await put(tenant, `${target}/over`, Buffer.alloc(max + 1)), 413, 'FILE_TOO_LARGE')
      same(t, await put(tenant, `${target}/over`, [Buffer.alloc(max), Buffer.alloc(1)]), 413, 'FILE_TOO_LARGE')
      same(t, await put(tenant, `${target}/fits`, Buffer.alloc(max + 1)), 413, 'FILE_TOO_LARGE')
      t.equal((await get(tenant, `${target}/fits`)).bytes.length, max, 'the existing object remains')
    }
    await settled()
    t.same(await storedRows(tenant), {
      objects: 3,
      bytes: 5_000,
      intents: 0,
      file_bytes: 5_000,
      file_count: 3,
      reserved: 0,
      files: 3,
    })

    // Neither response can depend on the body, because none is sent.
    await bucket(tenant, 'images', { allowed_mime_types: ['image/*'] })
    for (const [length, type, status] of [
      [1_000_000_000, 'image/png', 413],
      [10, 'text/html', 415],
    ] as const) {
      const socket = connect(tenant.port, '127.0.0.1')
      const { authorization = '' } = tenant.as('u1')
      socket.write(`POST ${objects}/images/a HTTP/1.1\r\nhost: x\r\nauthorization: ${authorization}\r\n`)
      socket.write(`content-type: ${type}\r\ncontent-length: ${length}\r\n\r\n`)
      const [response] = (await once(socket, 'data')) as [Buffer]
      socket.destroy()
      t.match(response.toString(), new RegExp(`^HTTP/1.1 ${status} `), `${status} from the headers alone`)
    }
    t.match(await storedRows(tenant), { objects: 3, intents: 0, reserved: 0, files: 3 })

    const cut = connect(tenant.port, '127.0.0.1')
    cut.write(
      `POST ${objects}/plain/cut HTTP/1.1\r\nhost: x\r\nauthorization: ${tenant.as('u1')['authorization'] ?? ''}\r\n`,
    )
    cut.write('content-type: text/plain\r\ncontent-length: 1000\r\n\r\nhalf')
    for (let tries = 0; (await storedRows(tenant)).files === 3 && tries < 1000; tries++)
      await new Promise((resolve) => setTimeout(resolve, 5))
    cut.destroy()
    for (let tries = 0; (await storedRows(tenant)).files > 3 && tries < 1000; tries++)
      await new Promise((resolve) => setTimeout(resolve, 5))
    await settled()
    t.match(
      await storedRows(tenant),
      { objects: 3, intents: 0, reserved: 0, files: 3 },
      'an interrupted upload leaves nothing behind',
    )
  })

  t.test('A type matches the types of the bucket exactly, or by the part before the asterisk', async (t) => {
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
      const response = await put(tenant, `mime-${n}/a`, 'x', 'u1', { 'content-type': type })
      t.equal(response.status, status, `${type} where ${allowed.join(', ')} is allowed`)
      if (status === 415) t.match(response.json(), { code: 'MIME_NOT_ALLOWED', error: 'invalid_mime_type' })
    }
    for (const type of ['nonsense', 'a/b/c', 'text/', '/plain', 'text/plain;', 'text/<script>']) {
      t.equal((await put(tenant, 'mime-0/b', 'x', 'u1', { 'content-type': type })).status, 400, type)
    }
    await settled()
    t.match(await storedRows(tenant), {
      objects: matches.filter(([, , status]) => status === 200).length,
      intents: 0,
      reserved: 0,
    })
  })

  t.test('A malformed or interrupted form is rejected and leaves nothing behind', async (t) => {
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
      const response = await put(tenant, 'docs/b', body, 'u1', form)
      t.equal(response.status, 400, `${JSON.stringify(body.slice(-40))}: ${response.text}`)
    }
    for (const type of ['multipart/form-data', 'multipart/form-data; boundary=y']) {
      t.equal((await put(tenant, 'docs/b', part('', `x${end}`), 'u1', { 'content-type': type })).status, 400, type)
    }
    t.equal(
      (await put(tenant, 'docs/b', Buffer.concat([Buffer.from(part('', '')), Buffer.alloc(500_000)]), 'u1', form))
        .status,
      400,
      'a long interrupted form',
    )

    const cut = connect(tenant.port, '127.0.0.1')
    const { authorization = '' } = tenant.as('u1')
    cut.write(`POST ${objects}/docs/b HTTP/1.1\r\nhost: x\r\nauthorization: ${authorization}\r\n`)
    cut.write(`content-type: ${form['content-type']}\r\ncontent-length: 9999\r\n\r\n${part('', 'half')}`)
    for (let tries = 0; (await storedRows(tenant)).files === 1 && tries < 1000; tries++)
      await new Promise((resolve) => setTimeout(resolve, 5))
    cut.destroy()
    for (let tries = 0; (await storedRows(tenant)).files > 1 && tries < 1000; tries++)
      await new Promise((resolve) => setTimeout(resolve, 5))
    await settled()
    t.same(await storedRows(tenant), {
      objects: 1,
      bytes: 6,
      intents: 0,
      file_bytes: 6,
      file_count: 1,
      reserved: 0,
      files: 1,
    })
  })

  t.same(runtime.errors, [], 'no internal error occurred')
})
