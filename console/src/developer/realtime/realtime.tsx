// The inspector of realtime channels: joins a topic, and shows broadcasts, presence and changes as they arrive.
import { useEffect, useRef, useState } from 'preact/hooks'
import { toApiError } from '../../api/use-load.ts'
import type { ApiError } from '../../api/client.ts'
import { Badge, Card, ScreenTitle } from '../../parts/basics.tsx'
import { Empty, ErrorBox } from '../../parts/feedback.tsx'
import { TextField } from '../../parts/form.tsx'
import { joinTopic, type Joined, type RealtimeMessage } from './join-topic.ts'

/** The newest messages that the page keeps. */
const maxMessages = 200

interface Shown extends RealtimeMessage {
  number: number
}

/** The screen of realtime channels. */
export function RealtimeScreen() {
  const [topic, setTopic] = useState('')
  const [isPrivate, setPrivate] = useState(false)
  const [state, setState] = useState<'out' | 'joining' | 'joined'>('out')
  const [error, setError] = useState<ApiError | undefined>(undefined)
  const [messages, setMessages] = useState<Shown[]>([])
  const joined = useRef<Joined | undefined>(undefined)
  const count = useRef(0)
  const leave = () => {
    joined.current?.leave()
    joined.current = undefined
    setState('out')
  }
  useEffect(() => leave, [])
  const join = () => {
    setState('joining')
    setError(undefined)
    setMessages([])
    joinTopic(topic, isPrivate, {
      onMessage: (message) =>
        setMessages((before) => [{ ...message, number: count.current++ }, ...before].slice(0, maxMessages)),
      onEnd(reason) {
        setState('out')
        setError(toApiError(new Error(reason)))
      },
    }).then(
      (channel) => {
        joined.current = channel
        setState('joined')
      },
      (cause: unknown) => {
        setState('out')
        setError(toApiError(cause))
      },
    )
  }
  return (
    <>
      <ScreenTitle
        title="Realtime"
        note="Broadcasts, presence and changes of records, as clients of a channel receive them"
      />
      <Card title="Channel">
        <form
          class="form"
          onSubmit={(event) => {
            event.preventDefault()
            if (state === 'out') join()
            else leave()
          }}
        >
          <TextField
            label="Topic"
            value={topic}
            onInput={setTopic}
            isRequired
            hint="The name of the channel, such as room."
          />
          <label class="check">
            <input
              type="checkbox"
              checked={isPrivate}
              disabled={state !== 'out'}
              onInput={(event) => setPrivate(event.currentTarget.checked)}
            />
            <span>Private channel</span>
          </label>
          {error !== undefined && <ErrorBox error={error} />}
          <div class="form-actions">
            <button type="submit" class="button primary" disabled={state === 'joining'}>
              {state === 'out' ? 'Join the channel' : state === 'joining' ? 'Joining …' : 'Leave the channel'}
            </button>
            <Badge text={state === 'joined' ? 'joined' : 'not joined'} kind={state === 'joined' ? 'good' : 'quiet'} />
          </div>
        </form>
      </Card>
      <Card title="Messages">
        {messages.length === 0 ? (
          <Empty title="No message has arrived.">Join a channel. The newest message is at the top.</Empty>
        ) : (
          <ol class="messages" aria-label="Messages" reversed>
            {messages.map(({ number, at, event, payload }) => (
              <li key={number}>
                <time dateTime={at}>{at.slice(11, 23)}</time> <Badge text={event} kind="info" />
                <code class="cell-value">{payload}</code>
              </li>
            ))}
          </ol>
        )}
      </Card>
    </>
  )
}
