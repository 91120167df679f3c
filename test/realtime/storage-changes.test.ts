// Changes of files and buckets on channels: their receivers have the rights of the storage interface's reads.
import { createClient, REALTIME_SUBSCRIBE_STATES } from '@supabase/supabase-js'
import t, { type Test } from 'tap'
import { startRuntime, type TestTenant } from '#test/support/runtime.ts'
import { until } from '#test/support/until.ts'
import { changesOf, follow } from './support/follow-changes.ts'
import { createNotes, insertNote } from './support/notes.ts'
import type { RawSocket } from './support/raw-socket.ts'

const files = { event: '*', schema: 'public', table: 'storage_objects' }
const buckets = { event: '*', schema: 'public', table: 'storage_buckets' }

async function call(tenant: TestTenant, caller: string | undefined, method: string, path: string, body?: object) {
  const response = await tenant.request(method, `/storage/v1/${path}`, {
    as: caller,
    ...(body === undefined ? {} : { body }),
  })
  if (response.status >= 300) throw new Error(`${method} ${path}: ${response.status} ${response.text}`)
}

const createBucket = (tenant: TestTenant, owner: string, name: string, policy: string) =>
  call(tenant, owner, 'POST', 'bucket', { name, policy })

const upload = (tenant: TestTenant, caller: string, path: string, text = 'text') =>
  call(tenant, caller, 'POST', `object/${path}`, Buffer.from(text))

/** The callers of a test, and what each has received: types and paths. */
async function followAll(t: Test, tenant: TestTenant, wanted: object) {
  const opened: Record<string, RawSocket> = {}
  for (const caller of ['ada', 'ben', 'anonymous', 'service']) {
    const { raw, reply } = await follow(tenant, caller === 'anonymous' ? undefined : caller, wanted)
    t.match(reply.payload, { status: 'ok' })
    opened[caller] = raw
    t.teardown(() => raw.leave())
  }
  const received = (name: string) =>
    Object.fromEntries(
      Object.entries(opened).map(([caller, raw]) => [
        caller,
        changesOf(raw).map(({ data }) => [data.type, data.record?.[name]].filter(Boolean).join(' ')),
      ]),
    )
  return {
    opened,
    received,
    /** Waits until the service has received this number of changes, which are sent to all subscribers in the same turn. */
    arrived: (count: number) => until(() => changesOf(opened['service'] as RawSocket).length === count),
  }
}

t.test('Changes of files', async (t) => {
  const runtime = await startRuntime(t)

  t.test('An upload, an overwrite, a move and a removal reach those who may read the bucket', async (t) => {
    const tenant = await runtime.addTenant()
    await createBucket(tenant, 'ada', 'open', 'public')
    await createBucket(tenant, 'ada', 'members', 'authenticated')
    await createBucket(tenant, 'ada', 'own', 'private')
    const { opened, received, arrived } = await followAll(t, tenant, files)
    for (const bucket of ['open', 'members', 'own']) await upload(tenant, 'ada', `${bucket}/a.txt`)
    await arrived(3)
    const all = ['INSERT a.txt', 'INSERT a.txt', 'INSERT a.txt']
    t.same(received('path'), { ada: all, ben: all.slice(1), anonymous: all.slice(2), service: all })
    await upload(tenant, 'ada', 'open/a.txt', 'longer text')
    await call(tenant, 'ada', 'POST', 'object/move', { bucketId: 'open', sourceKey: 'a.txt', destinationKey: 'b.txt' })
    await call(tenant, 'ada', 'DELETE', 'object/open/b.txt')
    await arrived(6)
    const anonymous = changesOf(opened['anonymous'] as RawSocket)
    const id = anonymous[0]?.data.record?.['id']
    t.match(
      anonymous.map(({ data }) => data),
      [
        {
          schema: 'public',
          table: 'storage_objects',
          type: 'INSERT',
          record: { id, path: 'a.txt', size: 4, owner_id: 'ada' },
        },
        { type: 'UPDATE', record: { id, path: 'a.txt', size: 11 }, old_record: { id } },
        { type: 'UPDATE', record: { id, path: 'b.txt', size: 11 }, old_record: { id } },
        { type: 'DELETE', old_record: { id }, record: undefined },
      ],
    )
    t.same(
      Object.keys(anonymous[0]?.data.record ?? {}).sort(),
      anonymous[0]?.data.columns.map(({ name }) => name).sort(),
      'the record has the columns that REST shows',
    )
    t.notOk(JSON.stringify(anonymous).includes('blob_id'))
  })

  t.test('A file that moves to another bucket is a deletion for those who can no longer read it', async (t) => {
    const tenant = await runtime.addTenant()
    await createBucket(tenant, 'ada', 'open', 'public')
    await createBucket(tenant, 'ada', 'own', 'private')
    await createBucket(tenant, 'ben', 'bens', 'private')
    await upload(tenant, 'ada', 'open/a')
    const { opened, received, arrived } = await followAll(t, tenant, files)
    const move = (from: string, to: string) =>
      call(tenant, 'service', 'POST', 'object/move', {
        bucketId: from,
        sourceKey: 'a',
        destinationBucket: to,
        destinationKey: 'a',
      })
    await move('open', 'own')
    await move('own', 'bens')
    await move('bens', 'open')
    await arrived(3)
    t.same(received('path'), {
      ada: ['UPDATE a', 'DELETE', 'INSERT a'],
      ben: ['DELETE', 'INSERT a', 'UPDATE a'],
      anonymous: ['DELETE', 'INSERT a'],
      service: ['UPDATE a', 'UPDATE a', 'UPDATE a'],
    })
    const [gone] = changesOf(opened['anonymous'] as RawSocket)
    t.same([gone?.data.record, Object.keys(gone?.data.old_record ?? {})], [undefined, ['id']])
  })

  t.test('Emptying a bucket and removing a folder is a deletion of each file', async (t) => {
    const tenant = await runtime.addTenant()
    await createBucket(tenant, 'ada', 'own', 'private')
    for (const path of ['one', 'two', 'folder/three', 'folder/four']) await upload(tenant, 'ada', `own/${path}`)
    const { received, arrived } = await followAll(t, tenant, { ...files, event: 'DELETE' })
    await call(tenant, 'ada', 'DELETE', 'object/own', { prefixes: ['one'] })
    await arrived(1)
    await call(tenant, 'ada', 'POST', 'bucket/own/empty', {})
    await arrived(4)
    const all = ['DELETE', 'DELETE', 'DELETE', 'DELETE']
    t.same(received('path'), { ada: all, ben: [], anonymous: [], service: all })
  })

  t.test('Filters and columns apply, and a subscription without a table has no files', async (t) => {
    const tenant = await runtime.addTenant()
    await createNotes(tenant)
    await createBucket(tenant, 'ada', 'open', 'public')
    const wanted = [
      { ...files, filter: 'size=gt.4', select: ['path', 'size'] },
      { ...files, filter: 'path=like.img/%' },
      { event: '*', schema: 'public' },
      { event: '*', schema: '*' },
    ]
    const { raw, reply } = await follow(tenant, undefined, ...wanted)
    const ids = (reply.payload['response'] as { postgres_changes: { id: number }[] }).postgres_changes
    const positions = (sent: number[]) => sent.map((id) => ids.findIndex((known) => known.id === id))
    await upload(tenant, 'ada', 'open/a', 'longer')
    await upload(tenant, 'ada', 'open/img/a', 'text')
    await insertNote(tenant, 'ada', { text: 'a note' })
    await until(() => raw.of('postgres_changes').length === 5)
    t.match(
      changesOf(raw).map(({ ids: sent, data }) => [positions(sent), data['schema'], data['table'], data.record]),
      [
        [[0], 'public', 'storage_objects', { path: 'a', size: 6 }],
        [[3], 'storage', 'objects', { name: 'a' }],
        [[1], 'public', 'storage_objects', { path: 'img/a' }],
        [[3], 'storage', 'objects', { name: 'img/a' }],
        [[2, 3], 'public', 'notes', { text: 'a note' }],
      ],
    )
    t.same(changesOf(raw)[0]?.data.record, { path: 'a', size: 6 })
    raw.leave()
    for (const [wrong, reason] of [
      [{ ...files, filter: 'blob_id=is.null' }, /has no column "blob_id". It has: id, bucket_id, path/],
      [
        { event: '*', schema: 'storage', table: 'files' },
        /Unknown table "files" of the schema "storage". Allowed: obj/,
      ],
      [{ event: '*', schema: 'public', table: 'functions' }, /Changes of the table "functions" are not events/],
    ] as const) {
      const { raw: rejected, reply: rejection } = await follow(tenant, 'service', wrong)
      t.match(rejection.payload, { status: 'error', response: { reason } })
      rejected.leave()
    }
  })

  t.test('An upload that fails sends nothing', async (t) => {
    const tenant = await runtime.addTenant()
    await createBucket(tenant, 'ada', 'own', 'private')
    const { received, arrived } = await followAll(t, tenant, files)
    await t.rejects(upload(tenant, 'ben', 'own/his'))
    await t.rejects(call(tenant, 'ben', 'DELETE', 'object/own/his'))
    await upload(tenant, 'ada', 'own/hers')
    await arrived(1)
    t.same(received('path'), { ada: ['INSERT hers'], ben: [], anonymous: [], service: ['INSERT hers'] })
  })
})

t.test('Changes of buckets', async (t) => {
  const runtime = await startRuntime(t)

  t.test('A policy that changes is an update, an insertion or a deletion by what each may read', async (t) => {
    const tenant = await runtime.addTenant()
    const { opened, received, arrived } = await followAll(t, tenant, buckets)
    await createBucket(tenant, 'ada', 'photos', 'private')
    for (const policy of ['authenticated', 'public', 'private'])
      await call(tenant, 'ada', 'PATCH', 'bucket/photos', { policy })
    await call(tenant, 'ada', 'PATCH', 'bucket/photos', { max_file_size: 10 })
    await call(tenant, 'ada', 'DELETE', 'bucket/photos')
    await arrived(6)
    const own = [
      'INSERT private',
      'UPDATE authenticated',
      'UPDATE public',
      'UPDATE private',
      'UPDATE private',
      'DELETE',
    ]
    t.same(received('policy'), {
      ada: own,
      ben: ['INSERT authenticated', 'UPDATE public', 'DELETE'],
      anonymous: ['INSERT public', 'DELETE'],
      service: own,
    })
    t.match(changesOf(opened['ada'] as RawSocket)[4]?.data.record, { name: 'photos', config: { max_file_size: 10 } })
  })

  t.test('An unmodified client follows the tables that Supabase has', async (t) => {
    const tenant = await runtime.addTenant()
    await createBucket(tenant, 'ada', 'open', 'public')
    await createBucket(tenant, 'ada', 'other', 'public')
    const client = createClient(tenant.url, tenant.publishableKey, {
      auth: { persistSession: false, autoRefreshToken: false, detectSessionInUrl: false },
    })
    const received: { table: string; eventType: string; new: object; old: object }[] = []
    const channel = client.channel('files')
    await new Promise<void>((resolve, reject) => {
      channel
        .on(
          'postgres_changes',
          { event: '*', schema: 'storage', table: 'objects', filter: 'bucket_id=eq.open' },
          (change) => received.push(change),
        )
        .on('postgres_changes', { event: 'UPDATE', schema: 'storage', table: 'buckets' }, (change) =>
          received.push(change),
        )
        .subscribe((status, error) => {
          if (status === REALTIME_SUBSCRIBE_STATES.SUBSCRIBED) resolve()
          else reject(error ?? new Error(status))
        })
    })
    await upload(tenant, 'ada', 'other/not-sent')
    await upload(tenant, 'ada', 'open/folder/a.txt')
    await call(tenant, 'ada', 'PATCH', 'bucket/open', { max_file_size: 100 })
    await call(tenant, 'ada', 'DELETE', 'object/open/folder/a.txt')
    await until(() => received.length === 3)
    t.match(received, [
      {
        table: 'objects',
        eventType: 'INSERT',
        new: {
          bucket_id: 'open',
          name: 'folder/a.txt',
          owner_id: 'ada',
          path_tokens: ['folder', 'a.txt'],
          metadata: { size: 4, mimetype: String },
        },
      },
      { table: 'buckets', eventType: 'UPDATE', new: { id: 'open', public: true, file_size_limit: 100 } },
      { table: 'objects', eventType: 'DELETE', old: { id: String } },
    ])
    await client.realtime.disconnect()
  })

  t.test('Streams of events have these changes only when they name the collection', async (t) => {
    const tenant = await runtime.addTenant()
    await createBucket(tenant, 'ada', 'open', 'public')
    await upload(tenant, 'ada', 'open/a')
    const types = async (query: string) => {
      const response = await fetch(`${tenant.url}/events/v1${query}`, {
        headers: { authorization: `Bearer ${tenant.secretKey}`, 'last-event-id': '0' },
      })
      const reader = response.body?.getReader()
      let text = ''
      while (!text.includes('created') && !text.includes('storage_objects'))
        text += Buffer.from((await reader?.read())?.value ?? []).toString()
      await reader?.cancel()
      return [...text.matchAll(/"type": "([a-z._]+)"/g)].map(([, type]) => type)
    }
    t.same(await types('?type=storage.object.created,record.inserted'), ['storage.object.created'])
    t.same(await types('?collection=storage_objects'), ['record.inserted'])
  })
})
