// Backups of tenants on a Docker Engine are taken, verified, and restored into a new tenant and into the same tenant.
import t from 'tap'
import { command } from '#test/functions/support/wasm.ts'
import { query } from '#test/support/postgres.ts'
import {
  canary,
  createOwner,
  ended,
  filesBelow,
  furnish,
  json,
  put,
  scratchObjects,
  seen,
  startBackupPlatform,
  toOwner,
} from './support/tenants.ts'

const megabyte = 2 ** 20

t.test('backups of a dedicated tenant', async (t) => {
  const platform = await startBackupPlatform(t)
  const ada = await createOwner(platform, 'ada')
  await furnish(platform, ada, 30 * megabyte)
  const before = await seen(platform, ada)
  let backupId = ''

  /** Deploys a function and invokes it `times` times. */
  const invokeFunction = async (times: number) => {
    const form = new FormData()
    for (const [name, value] of [
      ['name', 'one'],
      ['trigger', '"Http"'],
      ['config', '{}'],
    ] as const)
      form.set(name, value)
    form.set('wasm', new Blob([command()]), 'one.wasm')
    const encoded = new Response(form)
    const deployed = await platform.tenantCall('ada', 'POST', '/functions/v1/deploy', {
      key: ada.key,
      body: new Uint8Array(await encoded.arrayBuffer()),
      type: encoded.headers.get('content-type') ?? '',
    })
    if (deployed.status !== 201) throw new Error(await deployed.text())
    for (let n = 0; n < times; n++) await json(platform, 'ada', ada.key, 'POST', '/functions/v1/invoke/one', {})
  }
  const invocationsInLedger = async () =>
    Number(
      (
        await platform.sql(
          "select sum(value)::int as runs from usage_counters where tenant_id = $1 and meter = 'function_invocations'",
          [ada.id],
        )
      )[0]?.['runs'],
    )

  t.test('a backup is taken while files are overwritten, and its content is encrypted', async (t) => {
    let writing = true
    const churn = (async () => {
      for (let n = 0; writing; n++) await put(platform, 'ada', ada.key, `papers/churn-${n % 3}`, `${n}`)
    })()
    const response = await platform.call('POST', `/v1/tenants/${ada.id}/backups`, undefined, {
      'idempotency-key': 'first',
    })
    t.match(response, { status: 202, body: { tenant_id: ada.id, trigger: 'request', operation: { kind: 'backup' } } })
    t.match(await ended(platform, response), { state: 'succeeded', step: 'done', error: null })
    writing = false
    await churn
    const again = await platform.call('POST', `/v1/tenants/${ada.id}/backups`, undefined, {
      'idempotency-key': 'first',
    })
    t.equal(again.body['id'], response.body['id'], 'the same Idempotency-Key takes no second backup')
    backupId = String(response.body['id'])
    t.match(await platform.call('GET', `/v1/backups/${backupId}`), {
      status: 200,
      body: { state: 'complete', bytes: Number, manifest_sha256: /^[0-9a-f]{64}$/ },
    })
    t.match(await platform.call('GET', `/v1/tenants/${ada.id}/backups`), {
      body: { backups: [{ id: backupId }], next_cursor: null },
    })
    const files = await filesBelow(platform.directory)
    t.same(
      [...files.keys()].map((file) => file.slice(platform.directory.length)).sort(),
      ['database', 'files', 'index', 'manifest', 'record'].map((part) => `/${backupId}/${part}`),
    )
    for (const [file, bytes] of files) {
      // The record names the tenant, for operators who find the backup without its control database.
      const names = file.endsWith('/record') ? [] : [ada.id]
      for (const text of [canary, ...names, 'storage_objects', 'PGDMP'])
        t.notOk(bytes.includes(text), `${text} is not in ${file}`)
    }
    const rows = await platform.sql('select encode(key, $1) as key from backups', ['escape'])
    t.ok(
      rows.every(({ key }) => String(key).length > 60),
      'keys are sealed',
    )
  })

  t.test('a verification succeeds, and leaves nothing behind', async (t) => {
    const operation = await ended(platform, await platform.call('POST', `/v1/backups/${backupId}/verify`))
    t.match(operation, { state: 'succeeded', error: null })
    t.match(await platform.call('GET', `/v1/backups/${backupId}`), { body: { verified: String, verify_error: null } })
    t.same(await scratchObjects(platform), [])
  })

  t.test('a restore into a new tenant loses nothing, and only the new keys open it', async (t) => {
    const response = await platform.call('POST', `/v1/backups/${backupId}/restore`, { into: { name: 'grace' } })
    t.match(response, {
      status: 202,
      body: { name: 'grace', plan: 'Pro', status: 'pending', operation: { kind: 'restore', state: 'pending' } },
    })
    const grace = toOwner(response.body)
    t.match(await ended(platform, response), { state: 'succeeded' })
    t.match(await platform.call('GET', `/v1/tenants/${grace.id}`), {
      body: { status: 'ready', isolation: 'database-per-tenant' },
    })
    t.same(await seen(platform, grace), before)
    for (const key of [ada.key, ada.publishable]) {
      t.equal(
        (await platform.tenantCall('grace', 'GET', '/rest/v1/notes', { key })).status,
        401,
        'a key of the first tenant',
      )
    }
    const foreignUrl = new URL(ada.url)
    foreignUrl.username = `${grace.id}_admin`
    await t.rejects(query(foreignUrl.href, 'select 1'), 'a password of the first tenant')

    const rows = await query(
      grace.url,
      "select count(*) filter (where tenant_id <> current_setting('app.tenant_id')) as others, count(*) from notes",
    )
    t.same(rows, [{ others: '0', count: '3' }], 'rows carry the ID of the new tenant')
    t.same(await query(grace.url, `select rolname from pg_roles where rolname like '${ada.id}%'`), [])
    await json(platform, 'grace', grace.key, 'POST', '/rest/v1/notes', { owner: 'u2', title: 'written later' })
    await put(platform, 'grace', grace.key, 'papers/later.txt', 'later')
    await query(grace.url, 'insert into "Odd ""names""" (amount) values (1)')
    t.same(
      await query(grace.url, 'select at from "Odd ""names""" order by id desc limit 1'),
      [{ at: new Date('2020-02-02T02:02:02Z') }],
      'triggers run',
    )
    t.same(
      await query(grace.url, "select has_table_privilege($1, 'event_log', 'update') as may", [grace.id]),
      [{ may: false }],
      'a privilege that the runtime lacked stays revoked',
    )
    t.same(await seen(platform, ada), before, 'the first tenant is untouched')
  })

  t.test('a restore into the same tenant removes later data', async (t) => {
    await json(platform, 'ada', ada.key, 'POST', '/rest/v1/schemas', {
      name: 'later',
      fields: [{ name: 'text', type: 'string' }],
      rls_policy: { type: 'service' },
    })
    await json(platform, 'ada', ada.key, 'POST', '/admin/reload-schemas', {})
    await query(ada.url, 'delete from "Odd ""names""" where id > 10; drop table children; select next_ticket()')
    await put(platform, 'ada', ada.key, 'papers/letter.txt', 'overwritten')
    await put(platform, 'ada', ada.key, 'papers/later.txt', 'later')
    await platform.tenantCall('ada', 'DELETE', '/storage/v1/object/papers/large.bin', { key: ada.key })
    await invokeFunction(3)
    t.match(await ended(platform, await platform.call('POST', `/v1/backups/${backupId}/restore`, { into: 'same' })), {
      state: 'succeeded',
    })
    t.same(await seen(platform, ada), before)
    t.equal(
      (await platform.tenantCall('ada', 'GET', '/storage/v1/object/papers/later.txt', { key: ada.key })).status,
      404,
    )
    t.equal(
      (await platform.tenantCall('ada', 'GET', '/rest/v1/later', { key: ada.key })).status,
      404,
      'the runtime has dropped its cached schema',
    )
    t.same(
      await query(ada.url, "select datname from pg_database where datname ~ '_' and datname !~ '^template'"),
      [],
      'the old home and the copy are removed',
    )
    await put(platform, 'ada', ada.key, 'papers/new.txt', 'new')
    t.match(await platform.call('GET', `/v1/tenants/${ada.id}`), { body: { status: 'ready' } })
    t.equal(await invocationsInLedger(), 3, 'the usage of the old home is counted')
  })

  t.test('repeated restores count each invocation once, and files from the restore on', async (t) => {
    await invokeFunction(2)
    t.match(await ended(platform, await platform.call('POST', `/v1/backups/${backupId}/restore`, { into: 'same' })), {
      state: 'succeeded',
    })
    t.equal(await invocationsInLedger(), 5)
    const swapped = await platform.sql('select read_at from home_readings where tenant_id = $1', [ada.id])
    const [fresh] = await query(ada.url, 'select books_began, counted_at, file_byte_us::text from storage_usage')
    t.ok(
      Number(fresh?.['books_began']) >= Number(swapped[0]?.['read_at']) - 10_000,
      'the new counters begin at the restore, not when the copy was made',
    )
  })

  t.test('requests for impossible backups and restores are rejected', async (t) => {
    t.match(await platform.call('POST', '/v1/tenants/t_00000000000000000000/backups'), {
      status: 404,
      body: { code: 'TENANT_NOT_FOUND' },
    })
    t.match(await platform.call('POST', `/v1/backups/${backupId}/restore`, { into: { name: 'ada' } }), {
      status: 409,
      body: { code: 'NAME_TAKEN' },
    })
    t.match(await platform.call('POST', `/v1/backups/${backupId}/restore`, { into: { name: 'other', plan: 'Huge' } }), {
      status: 400,
      body: { code: 'UNKNOWN_PLAN' },
    })
    t.match(await platform.call('POST', '/v1/backups/nothing/verify'), {
      status: 404,
      body: { code: 'BACKUP_NOT_FOUND' },
    })
  })

  t.test('a deleted backup is removed with its key', async (t) => {
    t.match(await platform.call('DELETE', `/v1/backups/${backupId}`), { status: 200 })
    t.equal((await platform.call('GET', `/v1/backups/${backupId}`)).status, 404)
    t.same(await filesBelow(platform.directory), new Map())
    const audit = await platform.sql("select action from audit_log where action like 'backup.%' order by seq")
    t.same(
      audit.map(({ action }) => action),
      ['backup.create', 'backup.verify', 'backup.restore', 'backup.restore', 'backup.restore', 'backup.delete'],
    )
  })

  t.test('a tenant that shares a database of a Docker region is backed up and restored', async (t) => {
    const shared = await platform.call(
      'POST',
      '/v1/tenants',
      { name: 'shared', plan: 'Free', region: 'local', isolation: 'schema-per-tenant' },
      { prefer: 'wait=60' },
    )
    const sharedBackup = await platform.call(
      'POST',
      `/v1/tenants/${String(shared.body['tenant_id'])}/backups`,
      undefined,
      { prefer: 'wait=60' },
    )
    t.match(
      sharedBackup,
      { status: 202, body: { state: 'complete', isolation: 'schema-per-tenant' } },
      'it is backed up',
    )
    t.match(
      await platform.call(
        'POST',
        `/v1/backups/${String(sharedBackup.body['id'])}/restore`,
        { into: { name: 'shared-again' } },
        { prefer: 'wait=60' },
      ),
      { status: 202, body: { status: 'ready', isolation: 'schema-per-tenant', operation: { state: 'succeeded' } } },
      '… and restored',
    )
  })
})
