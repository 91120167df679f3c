// Documented examples: broadcasts on public channels.
import type { RealtimeChannelOptions } from '@supabase/supabase-js'
import { sources, type Example } from './example.ts'

export const broadcasts: Example[] = [
  {
    name: 'Receive messages',
    source: sources.broadcast,
    code: ({ supabase, log }) => {
      const myChannel = supabase.channel('test-channel')
      myChannel.on('broadcast', { event: 'shout' }, (payload) => log(payload)).subscribe()
    },
    effect: async (run) => {
      await run.joined()
      const channel = run.other.channel('test-channel')
      await channel.httpSend('whisper', { message: 'not for it' })
      await channel.httpSend('shout', { message: 'Hi' })
      return run.firsts(1)
    },
    expected: [{ type: 'broadcast', event: 'shout', payload: { message: 'Hi' } }],
  },
  {
    name: 'Receive all events',
    source: sources.broadcast,
    code: ({ supabase, log }) => {
      const myChannel = supabase.channel('test-channel')
      myChannel.on('broadcast', { event: '*' }, ({ event }) => log(event)).subscribe()
    },
    effect: async (run) => {
      await run.joined()
      for (const event of ['whisper', 'shout']) await run.other.channel('test-channel').httpSend(event, {})
      return run.firsts(2)
    },
    expected: ['whisper', 'shout'],
  },
  {
    name: 'Send by HTTP before subscribing, and by the WebSocket afterwards',
    source: sources.broadcast,
    before: (run) => run.listen('test-channel'),
    code: async ({ supabase, log }) => {
      const myChannel = supabase.channel('test-channel')
      await myChannel
        .send({ type: 'broadcast', event: 'shout', payload: { message: 'Hi' } })
        .then((response) => log(response))
      myChannel.subscribe((status) => {
        if (status !== 'SUBSCRIBED') return
        void myChannel.send({ type: 'broadcast', event: 'shout', payload: { message: 'Hi again' } })
      })
    },
    effect: async (run) => [...(await run.untilReceived(2)), ...(await run.firsts(1))],
    expected: [['shout', { message: 'Hi' }], ['shout', { message: 'Hi again' }], 'ok'],
  },
  {
    name: 'Send by the WebSocket',
    source: sources.reference,
    before: (run) => run.listen('room1'),
    code: ({ supabase }) => {
      const channel = supabase.channel('room1')
      channel.subscribe((status) => {
        if (status !== 'SUBSCRIBED') return
        void channel.send({ type: 'broadcast', event: 'cursor-pos', payload: { x: 0.5, y: 0.25 } })
      })
    },
    effect: (run) => run.untilReceived(1),
    expected: [['cursor-pos', { x: 0.5, y: 0.25 }]],
  },
  {
    name: 'Listen and send on the same channel, which does not receive its own messages',
    source: sources.reference,
    before: (run) => run.listen('room1'),
    code: ({ supabase, log }) => {
      const channel = supabase.channel('room1')
      channel
        .on('broadcast', { event: 'cursor-pos' }, ({ payload }) => log(payload))
        .subscribe((status) => {
          if (status !== 'SUBSCRIBED') return
          void channel.send({ type: 'broadcast', event: 'cursor-pos', payload: { x: 1, y: 2 } })
        })
    },
    effect: async (run) => {
      await run.untilReceived(1)
      await run.connect().channel('room1').httpSend('cursor-pos', { x: 3, y: 4 })
      return run.firsts(1)
    },
    expected: [{ x: 3, y: 4 }],
  },
  {
    name: 'Send with the options of the README, which are not in "config"',
    source: sources.readme,
    before: (run) => run.listen('broadcast-test'),
    code: ({ supabase, log }) => {
      const options = { broadcast: { ack: false, self: false } } as unknown as RealtimeChannelOptions
      const channel = supabase.channel('broadcast-test', options)
      channel.on('broadcast', { event: 'some-event' }, (payload) => log(payload))
      channel.subscribe(async (status) => {
        if (status === 'SUBSCRIBED')
          await channel.send({ type: 'broadcast', event: 'some-event', payload: { hello: 'world' } })
      })
    },
    effect: async (run) => [...(await run.untilReceived(1)), run.logged.length],
    expected: [['some-event', { hello: 'world' }], 0],
  },
  {
    name: 'Receive the own messages',
    source: sources.broadcast,
    code: ({ supabase, log }) => {
      const myChannel = supabase.channel('room-2', { config: { broadcast: { self: true } } })
      myChannel.on('broadcast', { event: 'test-my-messages' }, ({ payload }) => log(payload))
      myChannel.subscribe((status) => {
        if (status !== 'SUBSCRIBED') return
        void myChannel.send({
          type: 'broadcast',
          event: 'test-my-messages',
          payload: { message: 'talking to myself' },
        })
      })
    },
    effect: (run) => run.firsts(1),
    expected: [{ message: 'talking to myself' }],
  },
  {
    name: 'Acknowledge messages',
    source: sources.broadcast,
    before: (run) => run.listen('room-3'),
    code: ({ supabase, log }) => {
      const myChannel = supabase.channel('room-3', { config: { broadcast: { ack: true } } })
      myChannel.subscribe(async (status) => {
        if (status !== 'SUBSCRIBED') return
        log(await myChannel.send({ type: 'broadcast', event: 'acknowledge', payload: {} }))
      })
    },
    effect: async (run) => [...(await run.firsts(1)), ...(await run.untilReceived(1))],
    expected: ['ok', ['acknowledge', {}]],
  },
  {
    name: 'Send without a connection',
    source: sources.broadcast,
    before: (run) => run.listen('test-channel'),
    code: async ({ supabase, log }) => {
      const channel = supabase.channel('test-channel')
      void channel
        .send({ type: 'broadcast', event: 'test', payload: { message: 'Hi' } })
        .then((response) => log(response, supabase.realtime.isConnected()))
      await supabase.removeChannel(channel)
    },
    effect: async (run) => {
      await run.firsts(1)
      return [...(await run.untilReceived(1)), ...run.logged]
    },
    expected: [
      ['test', { message: 'Hi' }],
      ['ok', false],
    ],
  },
  {
    name: 'Send by HTTP with its result',
    source: sources.reference,
    before: (run) => run.listen('room1'),
    code: async ({ supabase, log }) => {
      const channel = supabase.channel('room1')
      try {
        log(await channel.httpSend('cursor-pos', { x: 1, y: 2 }))
      } finally {
        await supabase.removeChannel(channel)
      }
    },
    effect: async (run) => [...(await run.firsts(1)), ...(await run.untilReceived(1))],
    expected: [{ success: true }, ['cursor-pos', { x: 1, y: 2 }]],
  },
  {
    name: 'Send bytes by HTTP',
    source: sources.reference,
    before: (run) => run.listen('room1'),
    code: async ({ supabase, log }) => log(await supabase.channel('room1').httpSend('bytes', new Uint8Array([1, 255]))),
    effect: async (run) => {
      const [message] = (await run.untilReceived(1)) as [[string, ArrayBuffer]]
      return [...(await run.firsts(1)), [message[0], [...new Uint8Array(message[1])]]]
    },
    expected: [{ success: true }, ['bytes', [1, 255]]],
  },
  {
    name: 'Send by HTTP without a client',
    source: sources.broadcast,
    before: (run) => run.listen('test'),
    code: async ({ tenant, log }) => {
      const response = await fetch(`${tenant.url}/realtime/v1/api/broadcast`, {
        method: 'POST',
        headers: { apikey: tenant.publishableKey, 'Content-Type': 'application/json' },
        body: JSON.stringify({ messages: [{ topic: 'test', event: 'event', payload: { test: 'test' } }] }),
      })
      log(response.status)
    },
    effect: async (run) => [...(await run.firsts(1)), ...(await run.untilReceived(1))],
    expected: [202, ['event', { test: 'test' }]],
  },
]
