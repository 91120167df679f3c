// What ends channels and connections without a fault of theirs: changes that were deleted before they were sent, and too little
// memory. And pages of other origins, which may send broadcasts.
import t from 'tap'
import { startRuntime } from '#test/support/runtime.ts'
import { until } from '#test/support/until.ts'
import { changesOf, follow } from './support/follow-changes.ts'
import { createNotes, insertNote } from './support/notes.ts'
import { RawSocket } from './support/raw-socket.ts'

t.test('Losses', async (t) => {
  const runtime = await startRuntime(t, { bounds: { bodyBytes: 2 ** 20 } })

  t.test('A channel whose changes were deleted receives the reason, and may join again', async (t) => {
    const tenant = await runtime.addTenant()
    await createNotes(tenant)
    const all = { event: '*', schema: 'public', table: 'notes' }
    const { raw } = await follow(tenant, 'service', all)
    // The next event is deleted before it is read.
    await tenant.rows(
      `update event_log_gone set up_to =
         (select case when is_called then last_value + 1 else last_value end from event_log_seq_seq)`,
    )
    await insertNote(tenant, 'ada', { text: 'lost' })
    await until(() => raw.of('system').at(-1)?.payload['status'] === 'error', 'the reason')
    t.match(raw.of('system').at(-1)?.payload, {
      extension: 'system',
      status: 'error',
      message: /^ChangesLost: Changes were deleted before they could be sent/,
    })
    await raw.until(({ event }) => event === 'phx_error', 'the end of the channel')
    const { reply } = await raw.join('realtime:notes', { postgres_changes: [all] })
    t.match(reply.payload, { status: 'ok' })
    await insertNote(tenant, 'ada', { text: 'found' })
    await until(() => changesOf(raw).length === 1)
    t.match(changesOf(raw)[0]?.data, { record: { text: 'found' } })
    raw.leave()
  })

  t.test('A message that never ends does not use up the memory', async (t) => {
    const tenant = await runtime.addTenant()
    const open = async (key: string) => RawSocket.open(tenant, { key })
    const attackers = [await open(tenant.secretKey), await open(tenant.secretKey)]
    const other = await RawSocket.open(await runtime.addTenant())
    // Together they exceed the tenant's share.
    for (const { socket } of attackers) socket.send(Buffer.alloc(300_000, 'x'), { fin: false })
    await until(() => attackers.some(({ closed }) => closed !== undefined), 'the end of a connection')
    t.match(attackers.find(({ closed }) => closed !== undefined)?.closed, { code: 1013, reason: /^TooManyBytes: / })
    t.match((await other.join('realtime:room')).reply.payload, { status: 'ok' }, 'others are served')
    for (const raw of [...attackers, other]) raw.leave()
  })

  t.test('Pages of any origin may send broadcasts by HTTP', async (t) => {
    const tenant = await runtime.addTenant()
    const path = '/realtime/v1/api/broadcast'
    const preflight = await tenant.request('OPTIONS', path, {
      headers: {
        origin: 'https://app.example',
        'access-control-request-method': 'POST',
        'access-control-request-headers': 'apikey, content-type',
      },
    })
    t.match(
      [preflight.status, preflight.headers],
      [204, { 'access-control-allow-origin': '*', 'access-control-allow-methods': /POST/ }],
    )
    const sent = await tenant.request('POST', path, {
      as: 'service',
      headers: { origin: 'https://app.example' },
      body: { messages: [{ topic: 'room', event: 'x', payload: {} }] },
    })
    t.match([sent.status, sent.headers], [202, { 'access-control-allow-origin': '*' }])
  })

  t.same(runtime.errors, [])
})
