// The first platform key of an installation: one of the control planes that start at the same time creates it, and only its file has it.
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { createFirstKey, createPlatformKeyStore } from '#control-plane/keys/index.ts'
import { openDatabase } from '#control-plane/platform/database.ts'
import { createRecordWrite } from '#control-plane/platform/recorded-write.ts'
import { startApi } from '#test/support/control-plane/api.ts'

const api = await startApi(t, { control: false })
const planes = Array.from({ length: 4 }, () => {
  const database = openDatabase(api.controlUrl)
  t.teardown(() => database.$disconnect())
  const now = () => new Date()
  return { keys: createPlatformKeyStore({ database, now }), record: createRecordWrite(database, now) }
})
const directory = await mkdtemp(join(tmpdir(), 'tenantry-first-key-'))
t.teardown(() => rm(directory, { recursive: true }))
const fileOf = (number: number) => join(directory, `${number}`)
const startAll = () => Promise.all(planes.map(({ keys, record }, at) => createFirstKey(keys, record, fileOf(at))))
const statusOf = async (key: string) => (await api.call('GET', '/v1/plans', { key })).status

t.test('Of control planes that start at the same time, one creates the key and has its file', async (t) => {
  await api.sql('delete from platform_keys')
  t.same((await startAll()).filter(Boolean), [true])
  const files = await readdir(directory)
  t.equal(files.length, 1)
  const key = (await readFile(join(directory, files[0] ?? ''), 'utf8')).trim()
  t.equal(await statusOf(key), 200)

  t.same((await startAll()).filter(Boolean), [], 'a later start creates no key')
  t.same(await readdir(directory), files)
})

t.test('A key that a crash kept from becoming valid is removed, or replaced by a valid one', async (t) => {
  const [{ keys, record }] = planes as [(typeof planes)[number]]
  const file = fileOf(9)
  await writeFile(file, 'tnp_never_valid\n')
  t.equal(await createFirstKey(keys, record, file), false)
  await t.rejects(readFile(file), { code: 'ENOENT' })

  await api.sql('delete from platform_keys')
  await writeFile(file, 'tnp_never_valid\n')
  t.equal(await createFirstKey(keys, record, file), true)
  t.equal(await statusOf((await readFile(file, 'utf8')).trim()), 200)

  await api.sql('update platform_keys set revoked_at = now()')
  const unwritable = record({ keyId: 'system' }, (write) =>
    keys.createFirst('tnp_of_a_full_disk', () => Promise.reject(new Error('The disk is full.')), write),
  )
  await t.rejects(unwritable, { message: 'The disk is full.' })
  t.equal(await statusOf('tnp_of_a_full_disk'), 401, 'a key without its file is not valid')
})
