// All sealed values of the control database are sealed again with a new master key, whatever interrupts it.
import { randomBytes, randomUUID } from 'node:crypto'
import t from 'tap'
import { archiveKeyContext } from '#control-plane/backups/archive/store-archives.ts'
import { keyContext } from '#control-plane/backups/store-rows.ts'
import { createAuthorityStore } from '#control-plane/certificates/store.ts'
import { createInternalTokenRecord } from '#control-plane/internal-token/index.ts'
import { createSealedValues, rejectUnknownMasterKey, reseal } from '#control-plane/master-key/index.ts'
import { createSeal, type Seal } from '#control-plane/platform/seal.ts'
import { createStoredResponses } from '#control-plane/platform/stored-responses.ts'
import { keepSuperuserPasswords } from '#control-plane/superuser-passwords/index.ts'
import { passwordContexts } from '#control-plane/superuser-passwords/store-regions.ts'
import { secretContext } from '#control-plane/webhooks/store-rows.ts'
import { startPlane } from '#test/support/control-plane/plane.ts'
import { until } from '#test/support/until.ts'

const [first, second, third] = [randomBytes(32), randomBytes(32), randomBytes(32)]
const plane = await startPlane(t, first)
const { database, sql, clock } = plane
const both = createSeal(second, first)
const newest = createSeal(second)
const epoch = 0n

const webhook = randomUUID()
const backup = randomUUID()
const archive = randomUUID()
const request = { platformKeyId: randomUUID(), key: 'a:key', fingerprint: 'none' }
const columns = [
  ['archives', 'key'],
  ['backups', 'key'],
  ['certificate_authority', 'sealed_key'],
  ['idempotency_records', 'answer'],
  ['regions', 'etcd_credentials'],
  ['regions', 'first_superuser_password'],
  ['regions', 'next_superuser_password'],
  ['regions', 'superuser_password'],
  ['tenant_secrets', 'sealed'],
  ['webhook_endpoints', 'former_secret'],
  ['webhook_endpoints', 'secret'],
] as const

/** Writes a value into each sealed column, with the code of its feature. */
async function fill(seal: Seal) {
  const sealed = (text: string, context: string) => Buffer.from(seal.seal(text, context))
  const id = await plane.addTenant()
  await sql(
    'insert into webhook_endpoints (id, url, secret, former_secret, former_until) values ($1, $2, $3, $4, $5)',
    [
      webhook,
      'https://example.com',
      sealed('webhook', secretContext(webhook)),
      sealed('former', secretContext(webhook)),
      clock.now(),
    ],
  )
  await sql('insert into backups (id, tenant_id, region_id, trigger, key) values ($1, $2, $3, $4, $5)', [
    backup,
    id,
    'region-0',
    'request',
    sealed('backup', keyContext(backup)),
  ])
  await sql('insert into archives (id, tenant_id, key) values ($1, $2, $3)', [
    archive,
    id,
    sealed('archive', archiveKeyContext(archive)),
  ])
  await sql('insert into idempotency_records (platform_key_id, key, fingerprint, created_at) values ($1, $2, $3, $4)', [
    request.platformKeyId,
    request.key,
    request.fingerprint,
    clock.now(),
  ])
  await createStoredResponses({ database, seal, now: clock.now }).store(request, { is: 'response' })
  const authority = { certificate: 'certificate', privateKey: 'authority' }
  await database.$transaction((transaction) =>
    createAuthorityStore({ database, seal }).create(authority, { transaction, audit: () => undefined }),
  )
  const region = plane.region()
  await keepSuperuserPasswords(database, seal, [region])
  const contexts = passwordContexts(region.id)
  await sql('update regions set next_superuser_password = $2, first_superuser_password = $3 where id = $1', [
    region.id,
    sealed('next', contexts.next),
    sealed('first', contexts.first),
  ])
  await sql('update regions set etcd_credentials = $1 where id = $2', [sealed('etcd', `etcd:${region.id}`), region.id])
  const [stored] = await keepSuperuserPasswords(database, seal, [region])
  return { id, passwords: await stored?.superuser?.passwords() }
}

/** Reads all values with the code of their features. */
async function read(seal: Seal, id: string) {
  const open = (row: Record<string, unknown> | undefined, column: string, context: string) =>
    seal.open(row?.[column] as Uint8Array, context)
  const [endpoint] = await sql('select * from webhook_endpoints')
  const [key] = await sql('select * from backups')
  const [archived] = await sql('select * from archives')
  const secrets = await sql('select kind, sealed from tenant_secrets where tenant_id = $1 order by kind', [id])
  const [region] = await keepSuperuserPasswords(database, seal, [plane.region()])
  const [regionRow] = await sql('select * from regions where id = $1', [region?.id])
  return {
    etcd: open(regionRow, 'etcd_credentials', `etcd:${region?.id ?? ''}`),
    secrets: secrets.map((row) => open(row, 'sealed', `${id}:${String(row['kind'])}`)),
    webhook: [
      open(endpoint, 'secret', secretContext(webhook)),
      open(endpoint, 'former_secret', secretContext(webhook)),
    ],
    backup: open(key, 'key', keyContext(backup)),
    authority: (await createAuthorityStore({ database, seal }).get()).privateKey,
    archive: open(archived, 'key', archiveKeyContext(archive)),
    response: await createStoredResponses({ database, seal, now: clock.now }).find(request),
    superuser: [region?.superuserPassword, region?.postgres_url, await region?.superuser?.passwords()],
  }
}

t.test('All secrets are sealed again with a new master key', async (t) => {
  const bytes = await sql(
    "select table_name, column_name from information_schema.columns where table_schema = 'public' and data_type = 'bytea' order by 1, 2",
  )
  t.same(
    bytes.filter((row) => row['table_name'] !== 'usage_months').map(Object.values),
    columns,
    'no other column has sealed values',
  )
  const { id, passwords } = await fill(plane.seal)
  const before = await read(plane.seal, id)
  t.match(before, {
    backup: 'backup',
    etcd: 'etcd',
    authority: 'authority',
    archive: 'archive',
    webhook: ['webhook', 'former'],
    response: { is: 'response' },
  })
  // A first start records both at once, in the same row.
  const token = createInternalTokenRecord(database, clock.now)
  for (let round = 0; round < 10; round++) {
    await sql('update installation set master_key_id = null, internal_token_id = null')
    await Promise.all([
      createSealedValues(database, plane.seal, clock.now).recordSealed(undefined, epoch),
      token.replace(undefined, 'token', epoch),
    ])
  }
  t.equal(await token.read(), 'token')
  const values = createSealedValues(database, both, clock.now)

  t.test('A pass that is interrupted leaves values that both keys open', async (t) => {
    await plane.changeLeader()
    await t.rejects(values.reseal(epoch), { message: /Another control plane leads/ })
    t.same(await read(both, id), before)
    await sql('update installation set epoch = 0')
    // Some values have the new key, and some have not.
    await sql('delete from tenant_secrets where tenant_id <> $1', [id])
    const renewed = both.renew(
      (await sql("select sealed from tenant_secrets where kind = 'jwt_secret'"))[0]?.['sealed'] as Uint8Array,
      `${id}:jwt_secret`,
    )
    await sql("update tenant_secrets set sealed = $1 where kind = 'jwt_secret'", [Buffer.from(renewed ?? [])])
    t.same(await read(both, id), before)
  })

  t.test('The leader seals all of them, and records the key', async (t) => {
    const leaving = new AbortController()
    const running = reseal({ values, seal: both, clock, log: plane.log })({
      epoch,
      lost: leaving.signal,
    })
    await until(async () => (await values.masterKeyId()) === newest.masterKeyId, 'the new key is recorded')
    leaving.abort()
    await running
    t.same(await read(newest, id), before, 'the former key is not needed')
    t.same((await read(newest, id)).superuser[2], passwords, "a region's passwords do not depend on the key")
    t.match(passwords, ['next', String, 'first'])
    t.same(await values.reseal(epoch), { renewed: 0, skipped: 0, unreadable: [] }, 'nothing is left')
    t.same(await sql("select actor, action, target, detail from audit_log where action = 'master_key.rotate'"), [
      {
        actor: 'system',
        action: 'master_key.rotate',
        target: newest.masterKeyId,
        detail: { former: plane.seal.masterKeyId },
      },
    ])
  })

  t.test('A value that changes meanwhile is left to the next pass', async (t) => {
    const next = createSealedValues(database, createSeal(third, second), clock.now)
    await database.$transaction(async (transaction) => {
      await transaction.$executeRaw`select from webhook_endpoints for update`
      t.match(await next.reseal(epoch), { skipped: 2, unreadable: [] })
    })
    t.match(await next.reseal(epoch), { renewed: 2, skipped: 0 })
    t.same(await read(createSeal(third), id), before)
  })

  t.test('A value that no key opens is named, and the others are sealed', async (t) => {
    const fourth = createSeal(randomBytes(32), third)
    await sql("update webhook_endpoints set secret = '\\x00'")
    t.match(await createSealedValues(database, fourth, clock.now).reseal(epoch), {
      skipped: 0,
      unreadable: [`webhook_endpoints ${webhook}`],
    })
  })

  t.test('A control plane without the recorded key does not start', async (t) => {
    await rejectUnknownMasterKey(database, both)
    await t.rejects(rejectUnknownMasterKey(database, plane.seal), {
      message: new RegExp(`sealed with the master key ${newest.masterKeyId}`),
    })
  })
})
