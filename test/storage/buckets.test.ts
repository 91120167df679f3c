// Buckets as the specification defines them (2.1, 4.1, 5.4, 7), row by row.
import t from 'tap'
import { startRuntime } from '#test/support/runtime.ts'
import { buckets, create, put } from './support/buckets.ts'
import { iso, same, uuid } from './support/objects.ts'

t.test('Buckets', async (t) => {
  const runtime = await startRuntime(t)

  t.test('A bucket name has 3 to 63 characters of a-z, 0-9 and hyphens; an error states the reason', async (t) => {
    const tenant = await runtime.addTenant()
    for (const name of ['abc', 'a-c', '0-9', 'a--b', 'x'.repeat(63), '123', `a${'-'.repeat(61)}b`]) {
      t.equal((await tenant.request('POST', buckets, { as: 'u1', body: { name } })).status, 201, name)
    }
    for (const name of ['', 'a', 'ab', 'x'.repeat(64), 'x'.repeat(10_000)]) {
      same(
        t,
        await tenant.request('POST', buckets, { as: 'u1', body: { name } }),
        400,
        'INVALID_BUCKET_NAME',
        /length must be 3-63/,
      )
    }
    for (const name of [
      '-ab',
      'ab-',
      'Abc',
      'a_b',
      'a.b',
      'a b',
      'äbc',
      'abc\n',
      'abc\0',
      'a/b',
      '../',
      'a%2fb',
      "a'b",
      'ＡＢＣ',
    ]) {
      same(
        t,
        await tenant.request('POST', buckets, { as: 'u1', body: { name } }),
        400,
        'INVALID_BUCKET_NAME',
        /invalid characters/,
      )
    }
    same(
      t,
      await tenant.request('POST', buckets, { as: 'u1', body: { policy: 'public' } }),
      400,
      'MISSING_FIELD',
      /"name"/,
    )
    for (const name of [1, null, ['abc'], { a: 1 }])
      same(t, await tenant.request('POST', buckets, { as: 'u1', body: { name } }), 400, 'BAD_REQUEST', /"name"/)
    t.equal(
      (await tenant.rows('select count(*)::int as n from storage_buckets'))[0]?.['n'],
      8,
      'seven buckets and the system bucket',
    )
  })

  t.test('POST /bucket returns all fields, and coerces and ignores no input', async (t) => {
    const tenant = await runtime.addTenant()
    const made = await tenant.request('POST', buckets, {
      as: 'u1',
      body: {
        name: 'photos',
        policy: 'authenticated',
        allowed_mime_types: ['image/*', 'text/plain'],
        max_file_size: 5_000_000_000,
      },
    })
    t.equal(made.status, 201)
    const bucket = made.json()
    t.match(bucket, {
      id: uuid,
      name: 'photos',
      owner_id: 'u1',
      policy: 'authenticated',
      config: { allowed_mime_types: ['image/*', 'text/plain'], max_file_size: 5_000_000_000 },
      created_at: iso,
      updated_at: iso,
    })
    t.equal(bucket['created_at'], bucket['updated_at'])
    t.match(
      await create(tenant, 'u1', { name: 'plain' }),
      { policy: 'private', config: { allowed_mime_types: [], max_file_size: 0 } },
      'the defaults',
    )
    t.match(await create(tenant, 'service', { name: 'services' }), { owner_id: null }, 'the service owns no bucket')

    for (const body of [
      { policy: 'secret' },
      { policy: 1 },
      { policy: null },
      { max_file_size: -1 },
      { max_file_size: 1.5 },
      { max_file_size: 1e300 },
      { max_file_size: true },
      { max_file_size: 'many' },
      { allowed_mime_types: 'image/png' },
      { allowed_mime_types: ['image'] },
      { allowed_mime_types: ['*'] },
      { allowed_mime_types: ['*/*'] },
      { allowed_mime_types: ['image/p*'] },
      { allowed_mime_types: [''] },
      { allowed_mime_types: [1] },
      { config: { max_file_size: 1, more: 1 } },
    ]) {
      const response = await tenant.request('POST', buckets, { as: 'u1', body: { name: 'never', ...body } })
      t.equal(response.status, 400, `${JSON.stringify(body)}: ${response.text}`)
    }
    for (const field of ['owner_id', 'created_at', 'file_count', 'polcy']) {
      same(
        t,
        await tenant.request('POST', buckets, { as: 'u1', body: { name: 'never', [field]: 'x' } }),
        400,
        'UNKNOWN_FIELD',
        new RegExp(`"${field}"`),
      )
    }
    same(
      t,
      await tenant.request('POST', buckets, {
        as: 'u1',
        body: '{"name":',
        headers: { 'content-type': 'application/json' },
      }),
      400,
      'INVALID_JSON',
    )
    t.equal((await tenant.request('GET', `${buckets}/never`, { as: 'service' })).status, 404)
  })

  t.test('Creating a bucket needs a signed-in user and an unused name', async (t) => {
    const tenant = await runtime.addTenant()
    const neighbour = await runtime.addTenant({ name: 'neighbour' })
    same(t, await tenant.request('POST', buckets, { body: { name: 'mine' } }), 401, 'UNAUTHORIZED')
    same(
      t,
      await tenant.request('POST', buckets, { body: { name: 'mine' }, headers: { apikey: tenant.publishableKey } }),
      401,
      'UNAUTHORIZED',
    )
    await create(tenant, 'u1', { name: 'mine' })
    same(t, await tenant.request('POST', buckets, { as: 'u1', body: { name: 'mine' } }), 409, 'BUCKET_EXISTS')
    same(t, await tenant.request('POST', buckets, { as: 'u2', body: { name: 'mine' } }), 409, 'BUCKET_EXISTS')
    same(t, await tenant.request('POST', buckets, { as: 'u2', body: { name: 'system' } }), 409, 'BUCKET_EXISTS')
    const at = await Promise.all(
      Array.from({ length: 8 }, (_, n) => tenant.request('POST', buckets, { as: `u${n}`, body: { name: 'race' } })),
    )
    t.same(
      at.map(({ status }) => status).sort(),
      [201, 409, 409, 409, 409, 409, 409, 409],
      'one of many concurrent requests succeeds',
    )
    t.match(
      await create(neighbour, 'u9', { name: 'mine' }),
      { owner_id: 'u9' },
      'a name is unique only within its tenant',
    )
  })

  t.test('The owner or the service changes single fields of a bucket', async (t) => {
    const tenant = await runtime.addTenant()
    const made = await create(tenant, 'u1', {
      name: 'mine',
      policy: 'public',
      allowed_mime_types: ['image/*'],
      max_file_size: 100,
    })
    await create(tenant, 'u1', { name: 'hidden' })
    await create(tenant, 'u1', { name: 'shared', policy: 'authenticated' })
    // Timestamps have a resolution of one millisecond.
    await new Promise((resolve) => setTimeout(resolve, 5))
    const changed = await tenant.request('PATCH', `${buckets}/mine`, { as: 'u1', body: { max_file_size: 200 } })
    t.equal(changed.status, 200)
    t.match(changed.json(), {
      id: made['id'],
      config: { allowed_mime_types: ['image/*'], max_file_size: 200 },
      updated_at: iso,
    })
    t.ok(String(changed.json()['updated_at']) > String(made['updated_at']), 'later than its creation')
    t.equal(
      (await tenant.request('PATCH', `${buckets}/mine`, { as: 'u1', body: { config: { allowed_mime_types: [] } } }))
        .status,
      200,
    )
    t.equal(
      (await tenant.request('PATCH', `${buckets}/mine`, { as: 'service', body: { policy: 'authenticated' } })).status,
      200,
    )
    t.match((await tenant.request('GET', `${buckets}/mine`, { as: 'u1' })).json(), {
      id: made['id'],
      name: 'mine',
      owner_id: 'u1',
      policy: 'authenticated',
      config: { allowed_mime_types: [], max_file_size: 200 },
      created_at: made['created_at'],
    })
    const before = await tenant.rows(
      'select name, owner_id, policy, config, updated_at from storage_buckets order by name',
    )
    const denials: [string | undefined, string, number][] = [
      ['u2', 'mine', 403],
      ['u2', 'shared', 403],
      ['u2', 'hidden', 404],
      ['u2', 'nowhere', 404],
      [undefined, 'mine', 401],
      [undefined, 'hidden', 401],
      ['u1', 'system', 404],
    ]
    for (const [caller, name, status] of denials) {
      for (const method of ['PATCH', 'PUT']) {
        const response = await tenant.request(method, `${buckets}/${name}`, { as: caller, body: { policy: 'public' } })
        t.equal(response.status, status, `${method} ${name} by ${caller ?? 'anonymous'}`)
      }
    }
    same(
      t,
      await tenant.request('PATCH', `${buckets}/mine`, { as: 'u1', body: { name: 'other' } }),
      400,
      'INVALID_BUCKET',
      /keeps its name/,
    )
    for (const body of [
      { owner_id: 'u2' },
      { id: 1 },
      { policy: 'open' },
      { max_file_size: -1 },
      { allowed_mime_types: ['png'] },
      [],
    ]) {
      t.equal((await tenant.request('PATCH', `${buckets}/mine`, { as: 'u1', body })).status, 400, JSON.stringify(body))
    }
    t.same(
      await tenant.rows('select name, owner_id, policy, config, updated_at from storage_buckets order by name'),
      before,
      'rejected requests changed nothing',
    )
  })

  t.test('The owner or the service deletes an empty bucket; otherwise 409 states the number of files', async (t) => {
    const tenant = await runtime.addTenant()
    for (const policy of ['public', 'private', 'authenticated']) await create(tenant, 'u1', { name: policy, policy })
    await put(tenant, 'u1', 'private/1.txt')
    same(t, await tenant.request('DELETE', `${buckets}/private`, { as: 'u1' }), 409, 'BUCKET_NOT_EMPTY', /\b1 file\b/)
    await put(tenant, 'u1', 'private/2.txt')
    await put(tenant, 'u1', 'private/deep/3.txt')
    same(t, await tenant.request('DELETE', `${buckets}/private`, { as: 'u1' }), 409, 'BUCKET_NOT_EMPTY', /\b3 files\b/)
    same(
      t,
      await tenant.request('DELETE', `${buckets}/private`, { as: 'service' }),
      409,
      'BUCKET_NOT_EMPTY',
      /\b3 files\b/,
    )
    t.match((await tenant.request('GET', `${buckets}/private`, { as: 'u1' })).json(), { file_count: 3 }, 'it remains')

    same(t, await tenant.request('DELETE', `${buckets}/private`, { as: 'u2' }), 404, 'NoSuchBucket')
    same(t, await tenant.request('DELETE', `${buckets}/public`, { as: 'u2' }), 403, 'ACCESS_DENIED')
    same(t, await tenant.request('DELETE', `${buckets}/authenticated`, { as: 'u2' }), 403, 'ACCESS_DENIED')
    same(t, await tenant.request('DELETE', `${buckets}/public`), 401, 'UNAUTHORIZED')
    same(t, await tenant.request('DELETE', `${buckets}/nowhere`, { as: 'u1' }), 404, 'NoSuchBucket')
    t.equal((await tenant.rows('select count(*)::int as n from storage_buckets'))[0]?.['n'], 4, 'none is deleted')

    same(t, await tenant.request('POST', `${buckets}/private/empty`, { as: 'u2' }), 404, 'NoSuchBucket')
    t.equal((await tenant.request('POST', `${buckets}/private/empty`, { as: 'u1' })).status, 200)
    t.equal((await tenant.request('DELETE', `${buckets}/private`, { as: 'u1' })).status, 200)
    t.equal((await tenant.request('DELETE', `${buckets}/public`, { as: 'service' })).status, 200)
    same(t, await tenant.request('DELETE', `${buckets}/private`, { as: 'u1' }), 404, 'NoSuchBucket')
    const again = await create(tenant, 'u2', { name: 'private' })
    t.match(again, { owner_id: 'u2' }, 'the name is free')
    const events = await tenant.rows(
      "select type from event_log where type like 'storage.bucket.%' and payload ->> 'bucket' = 'private' order by seq",
    )
    t.same(
      events.map(({ type }) => type),
      ['created', 'emptied', 'deleted', 'created'].map((what) => `storage.bucket.${what}`),
      'the event log contains all changes',
    )
  })

  t.test('A bucket that is deleted during uploads is either gone without files or remains with them', async (t) => {
    const tenant = await runtime.addTenant()
    const outcomes = new Set<string>()
    for (let round = 0; round < 15; round++) {
      const name = `race-${round}`
      await create(tenant, 'u1', { name })
      const upload = tenant.request('POST', `/storage/v1/object/${name}/a`, {
        as: 'u1',
        body: 'x',
        headers: { 'content-type': 'text/plain' },
      })
      await new Promise((resolve) => setTimeout(resolve, round))
      const deleted = (await tenant.request('DELETE', `${buckets}/${name}`, { as: 'u1' })).status
      const uploaded = (await upload).status
      outcomes.add(`${uploaded} ${deleted}`)
      t.ok((uploaded === 200) !== (deleted === 200), `upload ${uploaded}, delete ${deleted}`)
      t.equal(
        (await tenant.request('GET', `/storage/v1/object/${name}/a`, { as: 'u1' })).status,
        uploaded === 200 ? 200 : 404,
      )
    }
    t.ok(
      [...outcomes].every((outcome) => !outcome.includes('5')),
      [...outcomes].join(', '),
    )
    await runtime.storage.idle()
    const [row] = await tenant.rows(
      'select (select count(*) from storage_objects)::int as n, (select count(*) from blob_intents)::int as intents',
    )
    t.equal(row?.['intents'], 0)
    t.equal((await tenant.files()).length, row?.['n'], 'as many files as rows')
  })

  t.test('An unmodified client works with buckets', async (t) => {
    const tenant = await runtime.addTenant()
    const { storage } = tenant.client('u1')
    t.match(
      await storage.createBucket('avatars', { public: true, fileSizeLimit: '1MB', allowedMimeTypes: ['image/png'] }),
      { data: { name: 'avatars' }, error: null },
    )
    t.match(await storage.getBucket('avatars'), {
      data: { name: 'avatars', public: true, file_size_limit: 1_000_000, allowed_mime_types: ['image/png'] },
      error: null,
    })
    t.match(await storage.updateBucket('avatars', { public: false }), { error: null })
    t.match((await storage.listBuckets()).data, [{ name: 'avatars', public: false }])
    t.match(await tenant.client('u2').storage.deleteBucket('avatars'), {
      data: null,
      error: { status: 404, message: 'Bucket not found' },
    })
    t.match(await storage.createBucket('avatars'), {
      data: null,
      error: { status: 409, message: 'The resource already exists' },
    })
    t.match(await storage.deleteBucket('avatars'), { error: null })
    t.same((await storage.listBuckets()).data, [])
  })

  t.same(runtime.errors, [], 'no internal error occurred')
})
