// The functions of the schema `realtime` are the same for all homes of a database. Each caller reaches only its own home, and no
// tenant can change them.
import { readFile } from 'node:fs/promises'
import t from 'tap'
import { defaultMaxObjects } from '#control-plane/homes/object-limit.ts'
import { prepareHomesSql, unpreparedSql } from '#control-plane/homes/prepare-database.ts'
import { createHome, type TestHome } from '#test/support/home.ts'
import { query, startPostgres } from '#test/support/postgres.ts'

const messagesSql = await readFile(new URL('../../examples/realtime/messages.sql', import.meta.url), 'utf8')

t.test('The schema realtime', async (t) => {
  const postgres = await startPostgres()
  t.teardown(() => postgres.stop())
  const superuser = postgres.url('homes')
  const [one, other] = [await createHome(postgres), await createHome(postgres)]
  const logins = ({ adminUrl, ddl_url, url }: TestHome) => [adminUrl, ddl_url, url]

  await t.test('Without the table of messages, the functions state what to do', async (t) => {
    await t.rejects(query(one.adminUrl, "select realtime.send('{}', 'x', 'room')"), {
      code: '42883',
      message: 'The tenant has no function "realtime_send".',
      hint: /documentation of realtime channels/,
    })
    t.same(await query(one.adminUrl, 'select realtime.topic() as topic'), [{ topic: null }])
  })

  for (const home of [one, other]) await query(home.adminUrl, messagesSql)
  const topics = async ({ tenantId }: TestHome) =>
    (await query(superuser, `select topic from ${tenantId}.realtime_messages order by id`)).map(({ topic }) => topic)

  await t.test('A message reaches the table of its sender only, whatever the sender defines or sets', async (t) => {
    const foreign = `${other.tenantId}.realtime_send($1, $2, $3, $4)`
    await query(
      one.adminUrl,
      `create function format(text, text) returns text language sql as $$ select 'select ${foreign}' $$;
       create function "substring"(text, text) returns text language sql as $$ select '${other.tenantId}' $$;
       set search_path = ${one.tenantId}, ${other.tenantId}, pg_catalog;
       select realtime.send('{}', 'x', 'own');
       select realtime.broadcast_changes('own changes', 'x', 'INSERT', 't', 's', null::record, null::record)`,
    )
    t.same(await topics(one), ['own', 'own changes'])
    t.same(await topics(other), [])
    for (const url of logins(one)) {
      await t.rejects(query(url, `select ${other.tenantId}.realtime_send('{}', 'x', 'foreign')`), /permission denied/)
      await t.rejects(query(url, `set role ${other.tenantId}_owner`), /permission denied/)
      await t.rejects(query(url, `set session authorization ${other.tenantId}_admin`), /permission denied/)
    }
    t.same(await topics(other), [])
  })

  await t.test('The functions give no right that their caller does not have', async (t) => {
    await t.rejects(query(one.url, "select realtime.send('{}', 'x', 'room')"), /denied for function realtime_send/)
    t.same(await topics(one), ['own', 'own changes'])
  })

  await t.test('No tenant can change the functions, or create one in the schema', async (t) => {
    for (const url of logins(one))
      for (const sql of [
        "create or replace function realtime.topic() returns text language sql as 'select null'",
        "create function realtime.send(jsonb) returns void language sql as ''",
        'create table realtime.messages (id int)',
        'drop function realtime.topic()',
        'alter function realtime.topic() rename to other',
        'alter function realtime.topic() security definer',
        'drop schema realtime cascade',
        'alter schema realtime rename to other',
        'create schema other',
      ])
        await t.rejects(query(url, sql), /permission denied|must be owner/, sql)
  })

  await t.test('A missing function is found and created again', async (t) => {
    const problems = async () =>
      (await query(superuser, unpreparedSql(defaultMaxObjects))).map(({ problem }) => problem)
    t.same(await problems(), [])
    await query(superuser, 'drop function realtime.topic()')
    t.same(await problems(), ['the functions of the schema realtime are missing'])
    await query(superuser, prepareHomesSql('homes', defaultMaxObjects))
    t.same(await problems(), [])
    t.same(await query(one.adminUrl, 'select realtime.topic() as topic'), [{ topic: null }])
  })
})
