// The example functions do what they are for, compiled from AssemblyScript, C and Rust.
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { compileC, compileRust } from '#examples/functions/compile-native.ts'
import { compileFunction } from '#examples/functions/compile.ts'
import { startRuntime } from '#test/support/runtime.ts'
import { deployFunction } from './support/deployed.ts'

const examples = join(import.meta.dirname, '..', '..', 'examples')

t.test('Example functions', { timeout: 600_000 }, async (t) => {
  const runtime = await startRuntime(t)
  const tenant = await runtime.addTenant()
  const schema = (name: string, ...fields: object[]) =>
    tenant.request('POST', '/rest/v1/schemas', {
      as: 'service',
      body: {
        name,
        fields: [{ name: 'id', type: 'uuid', primary: true }, { name: 'owner_id', type: 'string' }, ...fields],
        rls_policy: { type: 'ownership', owner_field: 'owner_id' },
      },
    })
  t.equal(
    (
      await schema(
        'contacts',
        { name: 'name', type: 'string', required: true },
        { name: 'age', type: 'number' },
        { name: 'since', type: 'datetime' },
      )
    ).status,
    201,
  )
  t.equal((await tenant.request('POST', '/admin/reload-schemas', { as: 'service' })).status, 200)
  const invoke = (name: string, as: string, body: string | Buffer) =>
    tenant.request('POST', `/functions/v1/invoke/${name}`, {
      as,
      body,
      headers: { 'content-type': 'application/octet-stream' },
    })
  const contacts = () => tenant.rows('select name, age::int, owner_id from contacts order by name')

  t.test('The C example imports CSV as records of its caller, all or none', async (t) => {
    await deployFunction(tenant, {
      name: 'import-csv',
      wasm: await compileC(join(examples, 'functions', 'import-csv.c')),
      config: { environment: { TABLE: 'contacts', OWNER_FIELD: 'owner_id' } },
    })
    const good = await invoke(
      'import-csv',
      'ada',
      'name,age,since\r\n"Lovelace, Ada",36,1815-12-10T00:00:00Z\r\n"O\'Neil ""Shaq""",,\r\nÄnne,7,2026-01-01T00:00:00Z\r\n',
    )
    t.equal(good.status, 200, good.text)
    t.equal(good.text, '{"imported":3}')
    const imported = [
      { name: 'Lovelace, Ada', age: 36, owner_id: 'ada' },
      { name: 'O\'Neil "Shaq"', age: null, owner_id: 'ada' },
      { name: 'Änne', age: 7, owner_id: 'ada' },
    ]
    t.same(
      (await contacts()).sort((a, b) => (String(a['name']) < String(b['name']) ? -1 : 1)),
      imported,
    )
    const bad: [csv: string, message: RegExp][] = [
      ['', /The input is empty/],
      ['name\na\n,b', /required|null value|more fields/],
      ['name,age\nMax,old', /invalid input syntax/],
      ['unknown\nx', /column "unknown|does not exist/],
      ['name\na,b', /more fields/],
      ['name) select 1; drop table contacts; --\nx', /does not exist|STATEMENT_REJECTED/],
    ]
    for (const [csv, message] of bad) {
      const response = await invoke('import-csv', 'ada', csv)
      t.equal(response.status, 422, response.text)
      t.match(response.text.replaceAll('\\"', '"'), message)
    }
    t.equal((await contacts()).length, 3)
    const many = ['name,age', ...Array.from({ length: 20_000 }, (_, n) => `person ${n},${n % 100}`)].join('\n')
    const all = await invoke('import-csv', 'ben', many)
    t.equal(all.text, '{"imported":20000}', all.text)
    t.same(await tenant.rows('select owner_id, count(*)::int as n from contacts group by 1 order by 1'), [
      { owner_id: 'ada', n: 3 },
      { owner_id: 'ben', n: 20_000 },
    ])
  })

  t.test('The Rust example returns the size of a picture that its caller may see', async (t) => {
    await deployFunction(tenant, {
      name: 'picture-size',
      wasm: await compileRust(join(examples, 'functions', 'picture-size.rs')),
    })
    const png = await readFile(join(examples, 'lighthouse.png'))
    const jpeg = Buffer.from('ffd8ffe000104a46494600010100000100010000ffffc0001108001a002b03012200021101031101', 'hex')
    t.equal((await tenant.request('POST', '/storage/v1/bucket', { as: 'ada', body: { name: 'pictures' } })).status, 201)
    const files: [name: string, type: string, bytes: Buffer][] = [
      ['coast.png', 'image/png', png],
      ['small.jpg', 'image/jpeg', jpeg],
      ['text.png', 'image/png', Buffer.from('no picture')],
      ['cut.png', 'image/png', png.subarray(0, 18)],
      ['cut.jpg', 'image/jpeg', jpeg.subarray(0, 25)],
    ]
    for (const [name, type, body] of files)
      t.equal(
        (
          await tenant.request('POST', `/storage/v1/object/pictures/${name}`, {
            as: 'ada',
            headers: { 'content-type': type },
            body,
          })
        ).status,
        200,
      )
    t.same((await invoke('picture-size', 'ada', 'pictures/coast.png\n')).json(), {
      type: 'image/png',
      width: png.readUInt32BE(16),
      height: png.readUInt32BE(20),
      bytes: png.length,
    })
    t.match((await invoke('picture-size', 'ada', 'pictures/small.jpg')).json(), {
      type: 'image/jpeg',
      width: 43,
      height: 26,
    })
    for (const name of ['text.png', 'cut.png', 'cut.jpg'])
      t.equal((await invoke('picture-size', 'ada', `pictures/${name}`)).status, 415, name)
    t.equal((await invoke('picture-size', 'ben', 'pictures/coast.png')).status, 404)
    t.equal((await invoke('picture-size', 'ada', 'pictures/none')).status, 404)
  })

  t.test('The AssemblyScript example stores a digest of the last day', async (t) => {
    await tenant.rows('delete from contacts')
    for (const [name, since] of [
      ['old', '2001-01-01T00:00:00Z'],
      ['new', new Date().toISOString()],
    ])
      t.equal(
        (await tenant.request('POST', '/rest/v1/contacts', { as: 'ada', body: { owner_id: 'ada', name, since } }))
          .status,
        201,
      )
    t.equal(
      (await tenant.request('POST', '/storage/v1/bucket', { as: 'service', body: { name: 'digests' } })).status,
      201,
    )
    await deployFunction(tenant, {
      name: 'nightly-digest',
      wasm: await compileFunction('nightly-digest'),
      config: { role: 'service_role', environment: { TABLE: 'contacts', TIME_FIELD: 'since' } },
    })
    const response = await invoke('nightly-digest', 'service', '')
    t.equal(response.status, 200, response.text)
    const path = String(response.json()['digest'])
    t.match(path, /^digests\/contacts\/\d{4}-\d\d-\d\d\.json$/)
    const digest = await tenant.request('GET', `/storage/v1/object/${path}`, { as: 'service' })
    t.match(digest.headers['content-type'], 'application/json')
    t.match(digest.json(), { records: 2, latest: [{ name: 'new', owner_id: 'ada' }] })
    t.equal((digest.json()['latest'] as unknown[]).length, 1)
  })
})
