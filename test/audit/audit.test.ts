// The audit log: every write has its entry, and a changed, removed or inserted entry is detected.
import t from 'tap'
import { auditHash } from '#control-plane/platform/audit-chain.ts'
import { newName, startApi, type CreatedTenant } from '#test/support/control-plane/api.ts'

interface Entry {
  seq: number
  at: string
  actor: string
  action: string
  target: string
  detail: Record<string, unknown>
}

const api = await startApi(t)
const entries = async (query = '?limit=1000') =>
  ((await api.call('GET', `/v1/audit${query}`)).body as { entries: Entry[] }).entries
const verify = async () => (await api.call('GET', '/v1/audit/verify')).body
const keyId = String((await api.sql("select id from platform_keys where name = 'first admin key'"))[0]?.['id'])

t.test('Every write records its actor, action and target; a read or a rejected write records nothing', async (t) => {
  const tenant = await api.create()
  const target = tenant.tenant_id
  const wait = { prefer: 'wait=30' }
  await api.call('PATCH', `/v1/tenants/${target}`, { body: { plan: 'Pro', suspended: true }, headers: wait })
  await api.call('POST', `/v1/tenants/${target}/keys/rotate`, { body: {}, headers: wait })
  const other = await api.newKey('admin')
  await api.call('DELETE', `/v1/tenants/${target}`, { key: other.key })
  await api.call('POST', `/v1/keys/${other.id}/rotate`, { body: {} })
  await api.call('DELETE', `/v1/keys/${other.id}`)
  const before = await entries()
  await api.call('GET', `/v1/tenants/${target}`)
  await api.call('PATCH', `/v1/tenants/${target}`, { body: { plan: 'Free' } })
  await api.call('POST', '/v1/tenants', { body: { name: 'www', plan: 'Free', region: 'local' } })
  t.same(await entries(), before, 'no further entry')
  t.match(before.slice(0, 7).reverse(), [
    {
      actor: keyId,
      action: 'tenant.create',
      target,
      detail: { name: tenant.name, plan: 'Free', region: 'local', isolation: 'schema-per-tenant' },
    },
    { actor: keyId, action: 'tenant.update', target, detail: { plan: 'Pro', suspended: true } },
    { actor: keyId, action: 'tenant.rotate_keys', target, detail: { old_keys_expire_at: String } },
    { actor: keyId, action: 'key.create', target: other.id, detail: { scope: 'admin' } },
    { actor: other.id, action: 'tenant.delete', target, detail: { purge_after: String } },
    { actor: keyId, action: 'key.rotate', target: other.id, detail: { old_key_expires_at: String } },
    { actor: keyId, action: 'key.revoke', target: other.id },
  ])
  t.match(
    before.slice(-2),
    [
      { actor: 'system', action: 'key.create' },
      { actor: 'system', action: 'certificate_authority.create' },
    ],
    'the system created the authority and the first key',
  )
})

t.test('Concurrent writes form one chain', async (t) => {
  const body = () => ({ name: newName(), plan: 'Free', region: 'local' })
  const made = await Promise.all(Array.from({ length: 20 }, () => api.call('POST', '/v1/tenants', { body: body() })))
  t.same(
    made.map(({ status }) => status),
    made.map(() => 201),
  )
  const all = await entries()
  t.same(await verify(), { whole: true, entries: all.length, broken_at: null })
  const targets = all.slice(0, 20).map(({ target }) => target)
  t.same(targets.sort(), made.map((response) => (response.body as CreatedTenant).tenant_id).sort())
})

t.test('The log is read page by page, newest first', async (t) => {
  const all = await entries()
  const seen: Entry[] = []
  for (let before = ''; ;) {
    const page = await entries(`?limit=7${before}`)
    seen.push(...page)
    if (page.length < 7) break
    before = `&before=${page.at(-1)?.seq ?? 0}`
  }
  t.same(seen, all)
  t.same(
    all.map(({ seq }) => seq),
    all.map(({ seq }) => seq).sort((a, b) => b - a),
  )
})

t.test('The database rejects the change or removal of an entry', async (t) => {
  for (const sql of ["update audit_log set actor = 'forged'", 'delete from audit_log', 'truncate audit_log']) {
    await t.rejects(api.sql(sql), { message: /append-only/ }, sql)
  }
  t.match(await verify(), { whole: true })
})

t.test('The verification detects entries that were changed without the trigger', async (t) => {
  const whole = (await verify()) as { entries: number }
  const [middle] = await api.sql('select * from audit_log order by seq offset 10 limit 1')
  if (middle === undefined) throw new Error('the log has too few entries')
  const seq = Number(middle['seq'])
  /** Changes entries as a superuser who disables the trigger, verifies the log, and restores all entries. */
  const forge = async (what: string, sql: string, brokenAt: number) => {
    await api.sql('alter table audit_log disable trigger all')
    await api.sql('create table audit_copy as table audit_log')
    await api.sql(sql)
    t.match(await verify(), { whole: false, broken_at: brokenAt }, what)
    await api.sql('delete from audit_log')
    await api.sql('insert into audit_log select * from audit_copy')
    await api.sql('drop table audit_copy')
    await api.sql('alter table audit_log enable trigger all')
  }
  const first = Number((await api.sql('select min(seq) as seq from audit_log'))[0]?.['seq'])
  const last = Number((await api.sql('select max(seq) as seq from audit_log'))[0]?.['seq'])
  for (const [column, value] of [
    ['at', "at - interval '1 millisecond'"],
    ['actor', "'system'"],
    ['action', "'tenant.read'"],
    ['target', "'t_00000000000000000000'"],
    ['detail', `detail || '{"plan": "Enterprise"}'`],
    ['previous', "repeat('0', 64)"],
    ['hash', "repeat('0', 64)"],
  ]) {
    await forge(
      `another ${String(column)}`,
      `update audit_log set "${String(column)}" = ${String(value)} where seq = ${seq}`,
      seq,
    )
  }
  await forge('the last one changed', `update audit_log set actor = 'system' where seq = ${last}`, last)
  await forge('the first one removed', `delete from audit_log where seq = ${first}`, first + 1)
  await forge('one removed', `delete from audit_log where seq = ${seq}`, seq + 1)
  await forge(
    'two entries exchanged',
    `update audit_log set seq = 100000 + ${2 * seq + 1} - seq where seq in (${seq}, ${seq + 1});
     update audit_log set seq = seq - 100000 where seq > 100000`,
    seq,
  )
  const forged = {
    at: new Date('2026-01-01T00:00:00.000Z'),
    actor: keyId,
    action: 'tenant.create',
    target: 't_00000000000000000000',
    detail: {},
    previous: String(middle['hash']),
  }
  await forge(
    'one inserted, with its own hash',
    `update audit_log set seq = seq + 100000 where seq > ${seq};
     insert into audit_log (seq, at, actor, action, target, detail, previous, hash)
     select ${seq + 1}, at, actor, action, target, detail, previous, '${auditHash(forged)}'
     from jsonb_populate_record(null::audit_log, '${JSON.stringify(forged)}')`,
    // The forged entry fits the one before it, but the next entry does not fit the forged one.
    seq + 1 + 100_000,
  )
  t.same(await verify(), { whole: true, ...whole, broken_at: null }, 'all entries are restored')
})
