// Documented examples: private channels, broadcasts from SQL and their replay. The SQL has the names of this service:
// `realtime_messages` for `realtime.messages`, `realtime_send` for `realtime.send`, and so on.
import type { TestTenant } from '#test/support/runtime.ts'
import { runSql } from '../support/run-sql.ts'
import { sources, type Example, type ExampleRun } from './example.ts'

const signedIn = `current_setting('app.role', true) = 'authenticated'`

/** The policies of the guides, for the tables of the example. */
export const policies = `
  create table rooms_users (user_id text, topic text);
  insert into rooms_users values ('ada', 'room-1');
  create policy "signed-in users can receive" on realtime_messages for select using (${signedIn});
  create policy "users of the room can send" on realtime_messages for insert with check (
    exists (
      select from rooms_users ru
      where ru.user_id = current_setting('app.user_id', true) and ru.topic = (select realtime_topic())
        and realtime_messages.extension in ('broadcast', 'presence')
    )
    or (${signedIn} and realtime_topic() like 'room:%')
  );`

/** The functions and triggers of the guides. */
export const triggers = `
  create table games (id int primary key, name text);
  create function games_changes() returns trigger security definer set search_path from current language plpgsql as $$
  begin
    perform realtime_broadcast_changes(
      'topic:' || coalesce(new.id, old.id)::text, tg_op, tg_op, tg_table_name, tg_table_schema, new, old);
    return null;
  end $$;
  create trigger handle_games_changes after insert or update or delete on games
    for each row execute function games_changes();

  create table notices (id int primary key, user_id text, room_id int);
  create function notify_message_activity() returns trigger security definer set search_path from current
    language plpgsql as $$
  begin
    if tg_op = 'INSERT' then
      perform realtime_send(
        jsonb_build_object('message_id', new.id, 'user_id', new.user_id, 'room_id', new.room_id),
        'message_created', 'room:' || new.room_id::text || ':notifications', true);
    end if;
    return null;
  end $$;
  create trigger notices_notification after insert on notices for each row execute function notify_message_activity();`

const signIn = async ({ supabase, tenant }: ExampleRun, user = 'ada') => supabase.realtime.setAuth(tenant.token(user))
const sql = (tenant: TestTenant, ...texts: string[]) => runSql(tenant, ...texts)

export const privates: Example[] = [
  {
    name: 'Join a private channel',
    source: sources.authorization,
    before: (run) => signIn(run),
    code: ({ supabase, log }) => {
      const channel = supabase.channel('room-1', { config: { private: true } })
      channel
        .on('broadcast', { event: 'test' }, ({ payload }) => log(payload))
        .subscribe((status, error) => {
          if (status === 'SUBSCRIBED') log('Connected!')
          else log(error)
        })
    },
    effect: async (run) => {
      await run.firsts(1)
      await run
        .connect(run.tenant.secretKey)
        .channel('room-1', { config: { private: true } })
        .httpSend('test', { n: 1 })
      return run.firsts(2)
    },
    expected: ['Connected!', { n: 1 }],
  },
  {
    name: 'A user without the right cannot join a private channel',
    source: sources.authorization,
    code: ({ supabase, log }) => {
      supabase.channel('room-1', { config: { private: true } }).subscribe((status) => log(status))
    },
    effect: async (run) => (await run.firsts(1))[0],
    expected: 'CHANNEL_ERROR',
  },
  {
    name: 'Send messages and presence on a private channel',
    source: sources.authorization,
    before: (run) => signIn(run),
    code: ({ supabase, log }) => {
      const channel = supabase.channel('room-1', { config: { private: true, broadcast: { ack: true } } })
      channel.subscribe(async (status) => {
        if (status !== 'SUBSCRIBED') return
        log(await channel.send({ type: 'broadcast', event: 'test', payload: {} }))
        log(await channel.track({ here: true }))
      })
    },
    effect: (run) => run.firsts(2),
    expected: ['ok', 'ok'],
  },
  {
    name: 'Send and receive on the channel of a room',
    source: sources.start,
    before: (run) => signIn(run),
    code: async (run) => {
      const { supabase, log } = run
      const channel = supabase.channel('room:lobby:messages', {
        config: { private: true, broadcast: { self: true } },
      })
      channel.on('broadcast', { event: 'message_sent' }, ({ payload }) => log(payload)).subscribe()
      await channel.send({
        type: 'broadcast',
        event: 'message_sent',
        payload: { text: 'Hello, world!', user: 'john_doe' },
      })
      // The guide sends at once, by HTTP, before the channel has joined.
      await run.joined()
      await channel.send({ type: 'broadcast', event: 'message_sent', payload: { text: 'Hello again' } })
    },
    effect: async (run) => {
      await run.joined()
      return (await run.firsts(1)).at(-1)
    },
    expected: { text: 'Hello again' },
  },
  {
    name: 'Receive what triggers send about a record',
    source: sources.subscribing,
    before: async ({ supabase, tenant }) => supabase.realtime.setAuth(tenant.token('ada')),
    code: async ({ supabase, log }) => {
      const gameId = '7'
      supabase
        .channel(`topic:${gameId}`, { config: { private: true } })
        .on('broadcast', { event: 'INSERT' }, ({ payload }) => log(payload))
        .on('broadcast', { event: 'UPDATE' }, ({ payload }) => log(payload))
        .on('broadcast', { event: 'DELETE' }, ({ payload }) => log(payload))
        .subscribe()
    },
    effect: async (run) => {
      await run.joined()
      await sql(
        run.tenant,
        `insert into games values (7, 'chess'), (8, 'go')`,
        `update games set name = 'draughts' where id = 7`,
        'delete from games',
      )
      return (await run.firsts(3)).map((payload) => {
        const { operation, table, record, old_record } = payload as Record<string, unknown>
        return { operation, table, record, old_record }
      })
    },
    expected: [
      { operation: 'INSERT', table: 'games', record: { id: 7, name: 'chess' }, old_record: null },
      {
        operation: 'UPDATE',
        table: 'games',
        record: { id: 7, name: 'draughts' },
        old_record: { id: 7, name: 'chess' },
      },
      { operation: 'DELETE', table: 'games', record: null, old_record: { id: 7, name: 'draughts' } },
    ],
  },
  {
    name: 'Receive what a trigger sends about an activity',
    source: sources.start,
    before: (run) => signIn(run),
    code: ({ supabase, log }) =>
      supabase
        .channel('room:3:notifications', { config: { private: true } })
        .on('broadcast', { event: 'message_created' }, ({ payload }) => log(payload))
        .subscribe(),
    effect: async (run) => {
      await run.joined()
      await sql(run.tenant, `insert into notices values (5, 'ada', 3)`, 'delete from notices')
      return run.firsts(1)
    },
    expected: [{ message_id: 5, user_id: 'ada', room_id: 3 }],
  },
  {
    name: 'Receive what SQL sends to a public topic',
    source: sources.broadcast,
    code: ({ supabase, log }) =>
      supabase
        .channel('topic')
        .on('broadcast', { event: 'event' }, ({ payload }) => log(payload))
        .subscribe(),
    effect: async (run) => {
      await run.joined()
      await sql(run.tenant, `select realtime_send(jsonb_build_object('hello', 'world'), 'event', 'topic', false)`)
      return run.firsts(1)
    },
    expected: [{ hello: 'world' }],
  },
  {
    name: 'Receive earlier messages',
    source: sources.broadcast,
    before: async (run) => {
      await signIn(run)
      await sql(
        run.tenant,
        `delete from realtime_messages where topic = 'main:room'`,
        ...[1, 2, 3].map((n) => `select realtime_send('{"n": ${n}}', 'position', 'main:room')`),
      )
    },
    code: ({ supabase, log }) => {
      const config = { private: true, broadcast: { replay: { since: Date.now() - 60_000, limit: 2 } } }
      const channel = supabase.channel('main:room', { config })
      channel
        .on('broadcast', { event: 'position' }, (message) => {
          if (message.meta?.replayed === true) log('replayed', message['payload'])
          else log('new', message['payload'])
        })
        .subscribe()
    },
    effect: async (run) => {
      await run.firsts(2)
      await sql(run.tenant, `select realtime_send('{"n": 4}', 'position', 'main:room')`)
      await run.firsts(3)
      return run.logged
    },
    expected: [
      ['replayed', { n: 2 }],
      ['replayed', { n: 3 }],
      ['new', { n: 4 }],
    ],
  },
]
