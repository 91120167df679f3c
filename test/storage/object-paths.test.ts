// Every valid path of an object is returned byte for byte, and no path causes an internal error.
import t from 'tap'
import { startRuntime } from '#test/support/runtime.ts'
import { bucket, get, objects, put, text, uuid } from './support/objects.ts'

t.test('Objects', async (t) => {
  const runtime = await startRuntime(t)

  t.test('Every valid path is returned byte for byte, and no path causes an internal error', async (t) => {
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
    t.equal(row?.['n'], good.length, 'no two paths are equal')
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
        const { status } = await tenant.request(method, `${objects}/${at}/${path}`, {
          as: 'u1',
          ...(method === 'PUT' || method === 'POST' ? { body: 'x', headers: text } : {}),
        })
        t.ok(status >= 400 && status < 500, `${method} ${at}/${shown}: ${status}`)
      }
      const { status } = await tenant.request('GET', `${objects}/${path}/a`, { as: 'u1' })
      t.ok(status >= 400 && status < 500, `a bucket ${shown}: ${status}`)
    }
    t.same(
      await tenant.rows('select path from storage_objects order by path'),
      before,
      'no object was added or removed',
    )

    for (const path of ['..', 'a/../b', '', 'a\0b', '\ud800', 'a\\b', `${long}x`]) {
      const results = [
        await tenant.request('POST', `${objects}/move`, {
          as: 'u1',
          body: { bucketId: 'docs', sourceKey: 'a', destinationKey: path },
        }),
        await tenant.request('POST', `${objects}/copy`, {
          as: 'u1',
          body: { bucketId: 'docs', sourceKey: 'a', destinationKey: path },
        }),
        await tenant.request('POST', `${objects}/move`, {
          as: 'u1',
          body: { bucketId: 'docs', sourceKey: path, destinationKey: 'b' },
        }),
      ]
      t.ok(
        results.every(({ status }) => status >= 400 && status < 500),
        `${JSON.stringify(path.slice(0, 20))}: ${results.map(({ status }) => status).join(' ')}`,
      )
      const others = [
        await tenant.request('DELETE', `${objects}/docs`, { as: 'u1', body: { prefixes: [path] } }),
        await tenant.request('POST', `${objects}/list/docs`, {
          as: 'u1',
          body: { prefix: path, search: path.slice(0, 100) },
        }),
        await tenant.request('POST', `${objects}/sign/docs`, { as: 'u1', body: { expiresIn: 60, paths: [path] } }),
      ]
      t.ok(
        others.every(({ status }) => status < 500),
        `${JSON.stringify(path.slice(0, 20))}: ${others.map(({ status }) => status).join(' ')}`,
      )
    }
    t.same(await tenant.rows('select path from storage_objects order by path'), before, 'still')
  })

  t.same(runtime.errors, [], 'no internal error occurred')
})
