// The stop of a runtime: its clients end in groups, so that they do not come back all at once.
import t from 'tap'
import { startRuntime } from '#test/support/runtime.ts'
import { until } from '#test/support/until.ts'
import { RawSocket } from './support/raw-socket.ts'

t.test(
  'A runtime that stops closes its connections in groups, each with the reason',
  { timeout: 120_000 },
  async (t) => {
    const runtime = await startRuntime(t)
    const tenant = await runtime.addTenant()
    const sockets = await Promise.all(Array.from({ length: 120 }, () => RawSocket.open(tenant)))
    runtime.beginStop()
    const closed = () => sockets.filter((raw) => raw.closed !== undefined)
    await until(() => closed().length > 0, 'the first group')
    const open = sockets.filter((raw) => raw.closed === undefined)
    t.ok(open.length >= 70, `${open.length} are open`)
    const last = open.at(-1)
    t.match(
      await last?.call('phoenix', 'heartbeat', {}),
      { payload: { status: 'ok' } },
      'the others are served meanwhile',
    )
    const { status, headers } = await tenant.request('GET', `/realtime/v1/websocket?apikey=${tenant.publishableKey}`, {
      headers: {
        connection: 'Upgrade',
        upgrade: 'websocket',
        'sec-websocket-version': '13',
        'sec-websocket-key': 'MDEyMzQ1Njc4OWFiY2RlZg==',
      },
    })
    t.match([status, headers['retry-after']], [503, '1'], 'no new connection begins')
    await until(() => closed().length === 120, 'all groups')
    for (const raw of sockets) t.match(raw.closed, { code: 1012, reason: /^Stopping: / })
    t.same(runtime.errors, [])
  },
)
