// Documented examples: clients, the statuses of channels, and their end.
import { until } from '#test/support/until.ts'
import { sources, type Example } from './example.ts'

export const connecting: Example[] = [
  {
    name: 'Create a client and a channel',
    source: sources.reference,
    code: ({ supabase, log }) => {
      const channel = supabase.channel('room1')
      channel.on('broadcast', { event: 'cursor-pos' }, (payload) => log(payload)).subscribe()
    },
    effect: async (run) => {
      await run.joined()
      await run.other.channel('room1').httpSend('cursor-pos', { x: 1 })
      return run.firsts(1)
    },
    expected: [{ type: 'broadcast', event: 'cursor-pos', payload: { x: 1 } }],
  },
  {
    name: 'Create a client of realtime-js alone, and receive its statuses',
    source: sources.readme,
    code: ({ library, tenant, log }) => {
      const client = new library.RealtimeClient(`${tenant.url.replace('http', 'ws')}/realtime/v1`, {
        params: { apikey: tenant.publishableKey },
      })
      const channel = client.channel('test-channel', { config: {} })
      channel.subscribe((status, error) => {
        log(status, error)
        if (status === 'SUBSCRIBED') void client.disconnect()
      })
    },
    effect: async (run) => (await run.firsts(1))[0],
    expected: 'SUBSCRIBED',
  },
  {
    name: 'Connect a client of realtime-js alone',
    source: sources.reference,
    code: async ({ library, tenant, log }) => {
      const client = new library.RealtimeClient(`${tenant.url}/realtime/v1`, {
        params: { apikey: tenant.publishableKey },
      })
      client.connect()
      await until(() => client.isConnected(), 'the connection')
      log(client.connectionState())
      await client.disconnect()
    },
    effect: (run) => run.firsts(1),
    expected: ['open'],
  },
  {
    name: 'Send parameters with the connection',
    source: sources.throttling,
    code: ({ connect, log }) => {
      const client = connect(undefined, { realtime: { params: { eventsPerSecond: 2 } } })
      client.channel('room1').subscribe((status) => {
        log(status)
        if (status === 'SUBSCRIBED') void client.realtime.disconnect()
      })
    },
    effect: async (run) => (await run.firsts(1))[0],
    expected: 'SUBSCRIBED',
  },
  {
    name: 'Handle the errors of a channel',
    source: sources.reference,
    code: ({ supabase, log }) => {
      supabase.channel('room1', { config: { private: true } }).subscribe((status, error) => {
        if (status === 'CHANNEL_ERROR' || status === 'TIMED_OUT') log(status, error?.message)
      })
    },
    effect: async (run) => {
      await run.firsts(1)
      return run.logged[0]
    },
    expected: ['CHANNEL_ERROR', 'Unauthorized: The policies do not allow this user to read from the topic.'],
  },
  {
    name: 'Receive the results of heartbeats',
    source: sources.reference,
    code: async ({ supabase, log }) => {
      supabase.realtime.onHeartbeat((status) => log(status))
      supabase.channel('room1').subscribe()
      await until(() => supabase.realtime.isConnected(), 'the connection')
      await supabase.realtime.sendHeartbeat()
    },
    effect: (run) => run.firsts(2),
    expected: ['sent', 'ok'],
  },
  {
    name: 'Get all channels',
    source: sources.reference,
    code: ({ supabase, log }) => {
      supabase.channel('room1').subscribe()
      supabase.channel('room2').subscribe()
      log(supabase.getChannels().map(({ topic }) => topic))
    },
    effect: (run) => run.firsts(1),
    expected: [['realtime:room1', 'realtime:room2']],
  },
  {
    name: 'Remove a channel',
    source: sources.reference,
    code: async (run) => {
      const { supabase, log } = run
      const myChannel = supabase.channel('room1')
      myChannel.on('broadcast', { event: '*' }, (message) => log(message['event'])).subscribe()
      await run.joined()
      log(await supabase.removeChannel(myChannel), supabase.getChannels().length)
    },
    effect: async (run) => {
      await run.listen('room1')
      await run.connect().channel('room1').httpSend('later', {})
      await run.untilReceived(1)
      return run.logged
    },
    expected: [['ok', 0]],
  },
  {
    name: 'Leave a channel, and remove it',
    source: sources.readme,
    code: async (run) => {
      const { supabase, log } = run
      const channel = supabase.channel('some-channel-to-remove')
      channel.subscribe()
      await run.joined()
      log(await channel.unsubscribe())
      await supabase.removeChannel(channel)
      log(supabase.getChannels().length)
    },
    effect: (run) => run.firsts(2),
    expected: ['ok', 0],
  },
  {
    name: 'Remove all channels, and close the connection',
    source: sources.readme,
    code: async (run) => {
      const { supabase, log } = run
      for (const name of ['room1', 'room2']) supabase.channel(name).subscribe()
      await run.joined()
      log(await supabase.removeAllChannels())
      await supabase.realtime.disconnect()
      log(supabase.getChannels().length, supabase.realtime.isConnected())
    },
    effect: async (run) => {
      await run.firsts(2)
      return run.logged
    },
    expected: [[['ok', 'ok']], [0, false]],
  },
]
