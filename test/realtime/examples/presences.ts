// Documented examples: presence.
import type { SupabaseClient } from '@supabase/supabase-js'
import { until } from '#test/support/until.ts'
import { sources, type Example } from './example.ts'

/** Tracks an entry of presence, and leaves. */
async function comeAndGo(client: SupabaseClient, topic: string, key: string, payload: object): Promise<void> {
  const channel = client.channel(topic, { config: { presence: { key } } })
  channel.on('presence', { event: 'sync' }, () => undefined).subscribe()
  await until(() => channel.state === 'joined', 'the other client has joined')
  await channel.track({ ...payload })
  await until(() => key in channel.presenceState(), 'the other client is present')
  await client.removeChannel(channel)
}

/** Returns the entries without their references, which are random. */
const withoutRefs = (entries: object[]) =>
  entries.map((entry) => Object.fromEntries(Object.entries(entry).filter(([name]) => name !== 'presence_ref')))

export const presences: Example[] = [
  {
    name: 'Receive the state, who joins and who leaves',
    source: sources.presence,
    code: ({ supabase, log }) => {
      const roomOne = supabase.channel('room_01')
      roomOne
        .on('presence', { event: 'sync' }, () => log('sync', Object.keys(roomOne.presenceState())))
        .on('presence', { event: 'join' }, ({ key, newPresences }) => log('join', key, withoutRefs(newPresences)))
        .on('presence', { event: 'leave' }, ({ key, leftPresences }) => log('leave', key, withoutRefs(leftPresences)))
        .subscribe()
    },
    effect: async (run) => {
      await run.joined()
      await comeAndGo(run.other, 'room_01', 'ada', { user: 'user-1' })
      await until(() => run.logged.some(([event]) => event === 'leave'), 'the other client has left')
      await until(() => run.logged.at(-1)?.[0] === 'sync', 'the last state')
      return run.logged
    },
    expected: [
      ['sync', []],
      ['join', 'ada', [{ user: 'user-1' }]],
      ['sync', ['ada']],
      ['leave', 'ada', [{ user: 'user-1' }]],
      ['sync', []],
    ],
  },
  {
    name: 'Send the own state',
    source: sources.presence,
    code: ({ supabase, log }) => {
      const roomOne = supabase.channel('room_01')
      const userStatus = { user: 'user-1', online_at: '2026-01-02T03:04:05.000Z' }
      roomOne.subscribe(async (status) => {
        if (status !== 'SUBSCRIBED') return
        log(await roomOne.track(userStatus))
      })
    },
    effect: async (run) => {
      await run.firsts(1)
      const channel = run.other.channel('room_01')
      channel.on('presence', { event: 'sync' }, () => run.log(Object.values(channel.presenceState()))).subscribe()
      const [, state] = (await run.firsts(2)) as [string, object[][]]
      return [run.logged[0], state.map(withoutRefs)]
    },
    expected: [['ok'], [[{ user: 'user-1', online_at: '2026-01-02T03:04:05.000Z' }]]],
  },
  {
    name: 'Stop sending the own state',
    source: sources.presence,
    code: ({ supabase, log }) => {
      const roomOne = supabase.channel('room_01')
      const untrackPresence = async () => log(await roomOne.untrack())
      roomOne
        .on('presence', { event: 'leave' }, ({ leftPresences }) => log(withoutRefs(leftPresences)))
        .on('presence', { event: 'join' }, () => void untrackPresence())
        .subscribe(async (status) => {
          if (status === 'SUBSCRIBED') await roomOne.track({ user: 'user-1' })
        })
    },
    effect: async (run) => (await run.firsts(2)).map((value) => JSON.stringify(value)).sort(),
    expected: ['"ok"', '[{"user":"user-1"}]'],
  },
  {
    name: 'Choose the key',
    source: sources.presence,
    code: ({ supabase, log }) => {
      const channelC = supabase.channel('test', { config: { presence: { key: 'userId-123' } } })
      channelC
        .on('presence', { event: 'join' }, ({ key }) => log(key))
        .subscribe((status) => {
          if (status === 'SUBSCRIBED') void channelC.track({})
        })
    },
    effect: (run) => run.firsts(1),
    expected: ['userId-123'],
  },
  {
    name: 'Receive the state with the own entry',
    source: sources.reference,
    code: ({ supabase, log }) => {
      const channel = supabase.channel('room1')
      channel
        .on('presence', { event: 'sync' }, () => log(Object.values(channel.presenceState()).map(withoutRefs)))
        .subscribe(async (status) => {
          if (status === 'SUBSCRIBED') await channel.track({ online_at: 'now' })
        })
    },
    effect: async (run) => (await run.firsts(2))[1],
    expected: [[{ online_at: 'now' }]],
  },
  {
    name: 'Receive the own arrival',
    source: sources.reference,
    code: ({ supabase, log }) => {
      const channel = supabase.channel('room1')
      channel
        .on('presence', { event: 'join' }, ({ newPresences }) => log(withoutRefs(newPresences)))
        .subscribe(async (status) => {
          if (status === 'SUBSCRIBED') await channel.track({ online_at: 'now' })
        })
    },
    effect: (run) => run.firsts(1),
    expected: [[{ online_at: 'now' }]],
  },
  {
    name: 'Receive the own departure, right after the arrival',
    source: sources.reference,
    code: ({ supabase, log }) => {
      const channel = supabase.channel('room1')
      channel
        .on('presence', { event: 'leave' }, ({ leftPresences }) => log(withoutRefs(leftPresences)))
        .subscribe(async (status) => {
          if (status !== 'SUBSCRIBED') return
          await channel.track({ online_at: 'now' })
          await channel.untrack()
        })
    },
    effect: (run) => run.firsts(1),
    expected: [[{ online_at: 'now' }]],
  },
  {
    name: 'Let the server choose the key, with an empty one',
    source: sources.readme,
    code: ({ supabase, log }) => {
      const channel = supabase.channel('presence-test', { config: { presence: { key: '' } } })
      channel.on('presence', { event: 'join' }, ({ key, newPresences }) => log(key.length, withoutRefs(newPresences)))
      channel.subscribe(async (status) => {
        if (status === 'SUBSCRIBED') await channel.track({ user_id: 1 })
      })
    },
    effect: async (run) => {
      await run.firsts(1)
      return run.logged
    },
    expected: [[36, [{ user_id: 1 }]]],
  },
]
