// In a dedicated tenant's home on a real Docker Engine, the tenant cannot damage the service's tables. Damage by a superuser is
// detected, repaired and reported, and a backup taken meanwhile fails with the names of the tables.
import t from 'tap'
import { createOwner, ended, put, startBackupPlatform } from '#test/backups/support/tenants.ts'
import { query } from '#test/support/postgres.ts'
import { until } from '#test/support/until.ts'

t.test('damage to a home', async (t) => {
  const platform = await startBackupPlatform(t)
  const ada = await createOwner(platform, 'ada')
  const signal = AbortSignal.timeout(600_000)
  const { containers } = await platform.host.observe({ installation: platform.installation }, signal)
  const postgres = containers.find(({ labels }) => labels.stack === ada.id && labels.service === 'postgres')
  const asSuperuser = async (sql: string) => {
    const { code, stderr } = await platform.host.exec(
      postgres?.id ?? '',
      ['psql', '-X', '-q', '-v', 'ON_ERROR_STOP=1', '-U', 'postgres', '-d', 'home', '-f', '-'],
      { input: `set search_path = "${ada.id}";\n${sql};\n`, signal },
    )
    if (code !== 0) throw new Error(stderr)
  }
  const hasTable = async (name: string) =>
    (await query(ada.url, 'select to_regclass($1) is not null as is_there', [name]))[0]?.['is_there']

  await t.test('cannot be done by the tenant', async (t) => {
    for (const sql of [
      'drop table usage_hours',
      'alter table storage_usage disable trigger counted',
      `drop schema "${ada.id}" cascade`,
      'truncate usage_hours',
      `set role "${ada.id}_system"`,
      'delete from usage_hours',
    ]) {
      await t.rejects(query(ada.url, sql), { code: /^(42501|2BP01)$/ }, sql)
    }
    let health = ''
    await until(async () => {
      const { body } = await platform.call('GET', `/v1/tenants/${ada.id}/health`)
      if (JSON.stringify(body) !== health) t.comment((health = JSON.stringify(body)))
      return body['status'] === 'healthy'
    }, 'the health of the tenant')
  })

  await t.test('by a superuser is detected, repaired and reported', async (t) => {
    await put(platform, 'ada', ada.key, 'system/a.txt', 'five!')
    await asSuperuser('drop table usage_hours; drop table storage_usage')
    const backup = await platform.call('POST', `/v1/tenants/${ada.id}/backups`)
    const operation = await ended(platform, backup)
    t.match(operation, {
      state: 'failed',
      error: /^The home is damaged: .*"storage_usage" is missing.*"usage_hours" is missing/,
    })
    t.match((await platform.call('GET', `/v1/backups/${String(backup.body['id'])}`)).body, {
      state: 'failed',
      error: /usage_hours/,
    })
    const repaired = await platform.until(
      ada.id,
      ({ status, conditions }) =>
        status === 'ready' &&
        (conditions as { type: string; message: string }[]).some(
          ({ type, message }) => type === 'Loss' && message.includes('storage_usage, usage_hours'),
        ),
      180,
    )
    t.ok(repaired)
    t.equal(await hasTable('usage_hours'), true)
    t.match(await query(ada.url, 'select file_count::int, file_bytes::int from storage_usage'), [
      { file_count: 1, file_bytes: 5 },
    ])
    t.match(
      await platform.sql(
        "select type, data ->> 'message' as message from operator_events where type = 'tenant.repaired'",
      ),
      [{ message: /usage_hours/ }],
    )
    await put(platform, 'ada', ada.key, 'system/b.txt', 'more')
    t.match(await ended(platform, await platform.call('POST', `/v1/tenants/${ada.id}/backups`)), { state: 'succeeded' })
  })

  await t.test('in the structure of an older version is repaired by the upgrade', async (t) => {
    const owner = `"${ada.id}_owner"`
    await asSuperuser(`alter schema "${ada.id}" owner to ${owner};
      do $$ declare r record; begin
        for r in select relname from pg_class where relnamespace = '"${ada.id}"'::regnamespace and relkind = 'r' loop
          execute format('alter table %I owner to ${owner}', r.relname); end loop;
        for r in select oid::regprocedure as f from pg_proc where pronamespace = '"${ada.id}"'::regnamespace loop
          execute format('alter function %s owner to ${owner}', r.f); end loop;
      end $$; drop table home_structure; drop function home_problems(), home_structure_of(name, name[]);
      alter table storage_objects drop column content_encoding;
      alter table function_invocations drop column state, drop column egress_bytes; drop policy retained on function_invocations;
      drop function storage_bucket_change_logged(), storage_object_change_logged() cascade;
      alter table event_log drop column counterpart;
      delete from home_migrations where version >= 16`)
    await query(ada.url, 'drop table usage_hours')
    await platform.sql("update tenants set home_version = 'older' where id = $1", [ada.id])
    await platform.until(ada.id, () => true)
    await until(async () => (await hasTable('usage_hours')) === true, 'the upgrade of the home', 180_000)
    await t.rejects(query(ada.url, 'drop table usage_hours'), { code: '42501' })
    t.match(await ended(platform, await platform.call('POST', `/v1/tenants/${ada.id}/backups`)), { state: 'succeeded' })
  })
})
