// Documented examples: changes of records. Each table of an example is a collection with events.
import type { RealtimeSystemPayload } from '@supabase/supabase-js'
import { sources, withoutOwner, type Example } from './example.ts'

/** The collections of the examples. Those with a key of the type `serial` have a number here, which the insert names. */
export const collections: Record<string, Record<string, 'string' | 'number' | 'datetime'>> = {
  todos: { task: 'string' },
  messages: { body: 'string' },
  users: { username: 'string', first_name: 'string', age: 'number' },
  profiles: { age: 'number' },
  products: { quantity: 'number' },
  colors: { name: 'string' },
  countries: { name: 'string' },
  orders: { amount: 'number', status: 'string' },
  posts: { title: 'string', status: 'string', value: 'number', deleted_at: 'datetime' },
  moves: { game_id: 'string' },
}

/** A change as the examples log it, in short: the event, the table, the values. */
interface Change {
  eventType: string
  table: string
  new: object
  old: object
}
const shortened = (change: Change) => [change.eventType, change.table, withoutOwner(change.new), change.old]

/** Inserts, updates and deletes a record of a collection. */
const changeOnce = async (run: Parameters<Example['effect']>[0], table: string, before: object, after: object) => {
  await run.joined()
  await run.insert(table, { id: 1, ...before })
  await run.update(table, 1, after)
  await run.remove(table, 1)
}

export const changes: Example[] = [
  {
    name: 'Listen to all changes of the schema',
    source: sources.changes,
    code: ({ supabase, log }) =>
      supabase
        .channel('schema-db-changes')
        .on('postgres_changes', { event: '*', schema: 'public' }, (payload) => log(shortened(payload)))
        .subscribe(),
    effect: async (run) => {
      await changeOnce(run, 'todos', { task: 'Change!' }, { task: 'Changed' })
      return run.firsts(3)
    },
    expected: [
      ['INSERT', 'todos', { id: 1, task: 'Change!' }, {}],
      ['UPDATE', 'todos', { id: 1, task: 'Changed' }, { id: 1 }],
      ['DELETE', 'todos', {}, { id: 1 }],
    ],
  },
  {
    name: 'Listen to inserts of the schema',
    source: sources.subscribing,
    code: ({ supabase, log }) =>
      supabase
        .channel('schema-db-changes')
        .on('postgres_changes', { event: 'INSERT', schema: 'public' }, (payload) => log(shortened(payload)))
        .subscribe(),
    effect: async (run) => {
      await changeOnce(run, 'todos', { task: 'one' }, { task: 'two' })
      await run.insert('messages', { id: 2, body: 'three' })
      return run.firsts(2)
    },
    expected: [
      ['INSERT', 'todos', { id: 1, task: 'one' }, {}],
      ['INSERT', 'messages', { id: 2, body: 'three' }, {}],
    ],
  },
  {
    name: 'Listen to updates of the schema',
    source: sources.subscribing,
    code: ({ supabase, log }) =>
      supabase
        .channel('schema-db-changes')
        .on('postgres_changes', { event: 'UPDATE', schema: 'public' }, (payload) => log(shortened(payload)))
        .subscribe(),
    effect: async (run) => {
      await changeOnce(run, 'todos', { task: 'one' }, { task: 'two' })
      return run.firsts(1)
    },
    expected: [['UPDATE', 'todos', { id: 1, task: 'two' }, { id: 1 }]],
  },
  {
    name: 'Listen to deletes of the schema',
    source: sources.changes,
    code: ({ supabase, log }) =>
      supabase
        .channel('schema-db-changes')
        .on('postgres_changes', { event: 'DELETE', schema: 'public' }, (payload) => log(shortened(payload)))
        .subscribe(),
    effect: async (run) => {
      await changeOnce(run, 'todos', { task: 'one' }, { task: 'two' })
      return run.firsts(1)
    },
    expected: [['DELETE', 'todos', {}, { id: 1 }]],
  },
  {
    name: 'Listen to all schemas',
    source: sources.reference,
    code: ({ supabase, log }) =>
      supabase
        .channel('room1')
        .on('postgres_changes', { event: '*', schema: '*' }, (payload) => log(shortened(payload)))
        .subscribe(),
    effect: async (run) => {
      await run.joined()
      await run.insert('countries', { id: 1, name: 'Chile' })
      return run.firsts(1)
    },
    expected: [['INSERT', 'countries', { id: 1, name: 'Chile' }, {}]],
  },
  {
    name: 'Listen to a table',
    source: sources.changes,
    code: ({ supabase, log }) =>
      supabase
        .channel('table-db-changes')
        .on('postgres_changes', { event: '*', schema: 'public', table: 'todos' }, (payload) => log(shortened(payload)))
        .subscribe(),
    effect: async (run) => {
      await run.joined()
      await run.insert('messages', { id: 1, body: 'not for it' })
      await changeOnce(run, 'todos', { task: 'one' }, { task: 'two' })
      return run.firsts(3)
    },
    expected: [
      ['INSERT', 'todos', { id: 1, task: 'one' }, {}],
      ['UPDATE', 'todos', { id: 1, task: 'two' }, { id: 1 }],
      ['DELETE', 'todos', {}, { id: 1 }],
    ],
  },
  {
    name: 'Listen to several events of a table, with a function for each',
    source: sources.reference,
    code: ({ supabase, log }) => {
      const handleRecordInserted = (payload: Change) => log('inserted', withoutOwner(payload.new))
      const handleRecordDeleted = (payload: Change) => log('deleted', payload.old)
      supabase
        .channel('room1')
        .on('postgres_changes', { event: 'INSERT', schema: 'public', table: 'countries' }, handleRecordInserted)
        .on('postgres_changes', { event: 'DELETE', schema: 'public', table: 'countries' }, handleRecordDeleted)
        .subscribe()
    },
    effect: async (run) => {
      await changeOnce(run, 'countries', { name: 'Chile' }, { name: 'Peru' })
      await run.firsts(2)
      return run.logged
    },
    expected: [
      ['inserted', { id: 1, name: 'Chile' }],
      ['deleted', { id: 1 }],
    ],
  },
  {
    name: 'Listen to several tables on one channel',
    source: sources.changes,
    code: ({ supabase, log }) =>
      supabase
        .channel('db-changes')
        .on('postgres_changes', { event: '*', schema: 'public', table: 'messages' }, (payload) =>
          log(shortened(payload)),
        )
        .on('postgres_changes', { event: 'INSERT', schema: 'public', table: 'users' }, (payload) =>
          log(shortened(payload)),
        )
        .subscribe(),
    effect: async (run) => {
      await changeOnce(run, 'users', { username: 'Ada' }, { username: 'Ben' })
      await changeOnce(run, 'messages', { body: 'one' }, { body: 'two' })
      return (await run.firsts(4)).map((change) => (change as string[]).slice(0, 2).join(' '))
    },
    expected: ['INSERT users', 'INSERT messages', 'UPDATE messages', 'DELETE messages'],
  },
  {
    name: 'Listen to the schema, a table and a filter on one channel',
    source: sources.readme,
    code: ({ supabase, log }) => {
      const channel = supabase.channel('db-changes')
      channel.on('postgres_changes', { event: '*', schema: 'public' }, ({ table }) => log('all', table))
      channel.on('postgres_changes', { event: 'INSERT', schema: 'public', table: 'messages' }, () => log('message'))
      channel.on(
        'postgres_changes',
        { event: 'UPDATE', schema: 'public', table: 'users', filter: 'username=eq.Realtime' },
        () => log('user'),
      )
      channel.subscribe((status) => log(status))
    },
    effect: async (run) => {
      await run.firsts(1)
      await run.insert('messages', { id: 1, body: 'one' })
      await run.insert('users', { id: 1, username: 'Ada' })
      await run.update('users', 1, { username: 'Ben' })
      await run.update('users', 1, { username: 'Realtime' })
      await run.firsts(7)
      return run.logged
    },
    expected: [
      ['SUBSCRIBED'],
      ['all', 'messages'],
      ['message'],
      ['all', 'users'],
      ['all', 'users'],
      ['all', 'users'],
      ['user'],
    ],
  },
  {
    name: 'Select columns',
    source: sources.readme,
    code: ({ supabase, log }) =>
      supabase
        .channel('db-changes')
        .on(
          'postgres_changes',
          { event: '*', schema: 'public', table: 'users', select: ['id', 'first_name'] },
          (payload) => log(withoutOwner(payload.new)),
        )
        .subscribe(),
    effect: async (run) => {
      await run.joined()
      await run.insert('users', { id: 1, username: 'ada', first_name: 'Ada' })
      return run.firsts(1)
    },
    expected: [{ id: 1, first_name: 'Ada' }],
  },
  {
    name: 'Learn when changes flow',
    source: sources.reference,
    code: ({ supabase, log }) => {
      const channel = supabase.channel('room1', { config: { broadcast: { replication_ready: true } } })
      channel
        .on('postgres_changes', { event: '*', schema: 'public', table: 'messages' }, (payload) => log(payload.table))
        .on('system', {}, (payload: RealtimeSystemPayload) => {
          if (payload.extension === 'system' && payload.status === 'ok') log(payload.message)
        })
        .subscribe()
    },
    effect: async (run) => {
      await run.firsts(1)
      await run.insert('messages', { id: 1, body: 'one' })
      return run.firsts(2)
    },
    expected: ['Replication connection established', 'messages'],
  },
  {
    name: 'Use a token of your own, and a fresh one',
    source: sources.changes,
    code: async ({ supabase, tenant, log }) => {
      await supabase.realtime.setAuth(tenant.token('ada'))
      supabase
        .channel('db-changes')
        .on('postgres_changes', { event: '*', schema: 'public', table: 'messages', filter: 'body=eq.bye' }, (payload) =>
          log(withoutOwner(payload.new)),
        )
        .subscribe()
    },
    effect: async (run) => {
      await run.joined()
      await run.supabase.realtime.setAuth(run.tenant.token('ada', { fresh: true }))
      await run.insert('messages', { id: 1, body: 'hey' })
      await run.insert('messages', { id: 2, body: 'bye' })
      return run.firsts(1)
    },
    expected: [{ id: 2, body: 'bye' }],
  },
  {
    name: 'Return to the callback of the client for tokens',
    source: sources.reference,
    code: async ({ connect, tenant, log }) => {
      const client = connect(undefined, { accessToken: async () => tenant.token('ada') })
      await client.realtime.setAuth(tenant.token('ben'))
      await client.realtime.setAuth()
      client.channel('room1').subscribe((status) => {
        log(status)
        if (status === 'SUBSCRIBED') void client.realtime.disconnect()
      })
    },
    effect: async (run) => (await run.firsts(1))[0],
    expected: 'SUBSCRIBED',
  },
]
