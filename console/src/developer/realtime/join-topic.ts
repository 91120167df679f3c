// A client of the realtime protocol, version 1.0.0, for one topic. The session cannot be sent with a WebSocket, so the API exchanges
// it for two tokens that expire: an anonymous one for the URL, and one of the service role for the message that joins.
import { ApiError, call, urlOf } from '../../api/client.ts'

/** A message of the topic. */
export interface RealtimeMessage {
  /** The time of its arrival in ISO 8601. */
  at: string
  event: string
  /** JSON. */
  payload: string
}

/** A joined topic. */
export interface Joined {
  leave: () => void
}

interface Listeners {
  onMessage: (message: RealtimeMessage) => void
  /** Called when the channel ends, with the reason. */
  onEnd: (reason: string) => void
}

interface Tokens {
  connect_token: string
  access_token: string
}

interface Frame {
  topic: string
  event: string
  payload: { status?: string; response?: { reason?: string }; message?: string; event?: string; payload?: unknown }
  ref: string | null
}

const heartbeatMilliseconds = 25_000

/** Joins a topic. @throws ApiError if the channel rejects it */
export async function joinTopic(name: string, isPrivate: boolean, { onMessage, onEnd }: Listeners): Promise<Joined> {
  const { body } = await call<Tokens>('POST', '/console/v1/realtime-token')
  const url = new URL(urlOf('/realtime/v1/websocket'), location.href)
  url.protocol = url.protocol === 'https:' ? 'wss:' : 'ws:'
  url.search = new URLSearchParams({ apikey: body.connect_token, vsn: '1.0.0' }).toString()
  const socket = new WebSocket(url)
  const topic = `realtime:${name}`
  const send = (event: string, payload: unknown, ref: string, to = topic) =>
    socket.send(JSON.stringify({ topic: to, event, payload, ref, join_ref: '1' }))
  const heartbeat = setInterval(() => {
    if (socket.readyState === WebSocket.OPEN) send('heartbeat', {}, 'heartbeat', 'phoenix')
  }, heartbeatMilliseconds)
  let isLeft = false
  const leave = () => {
    isLeft = true
    clearInterval(heartbeat)
    socket.close()
  }
  return new Promise((resolve, reject) => {
    const fail = (reason: string) => {
      if (isLeft) return
      leave()
      // It has no effect after the join; then `onEnd` reports the reason.
      reject(new ApiError(0, 'REALTIME', reason, undefined))
      onEnd(reason)
    }
    socket.addEventListener('open', () => {
      const config = {
        broadcast: { self: true },
        presence: { enabled: true },
        private: isPrivate,
        postgres_changes: [{ event: '*', schema: 'public' }],
      }
      send('phx_join', { config, access_token: body.access_token }, 'join')
    })
    socket.addEventListener('close', ({ reason }) => fail(reason === '' ? 'The connection has ended.' : reason))
    socket.addEventListener('message', ({ data }) => {
      const { event, payload, ref } = JSON.parse(String(data)) as Frame
      if (event === 'phx_reply' && ref === 'join') {
        if (payload.status === 'ok') resolve({ leave })
        else fail(payload.response?.reason ?? 'The channel rejected the join.')
      } else if (event === 'phx_close' || event === 'phx_error') fail('The channel has ended.')
      else if (event !== 'phx_reply')
        onMessage({
          at: new Date().toISOString(),
          event: event === 'broadcast' ? `broadcast ${payload.event ?? ''}` : event,
          payload: JSON.stringify(event === 'broadcast' ? (payload.payload ?? null) : payload),
        })
    })
  })
}
