// The view of the tenant's event log: every change as it is committed, with filters, a pause, and each event as JSON.
import { useState } from 'preact/hooks'
import { wholeNumber } from '../../format/numbers.ts'
import { indentJson } from '../../format/json.ts'
import { Badge, Card, CopyButton, ScreenTitle } from '../../parts/basics.tsx'
import { Empty, ErrorBox } from '../../parts/feedback.tsx'
import { useLog, type LogFilter, type LogState, type ShownEvent } from './use-log.ts'

const types = [
  'storage.object.created',
  'storage.object.deleted',
  'storage.object.moved',
  'storage.bucket.created',
  'storage.bucket.updated',
  'storage.bucket.deleted',
  'storage.bucket.emptied',
  'storage.bucket.urls_revoked',
  'record.inserted',
  'record.updated',
  'record.deleted',
  'functions.deployed',
  'functions.updated',
  'functions.deleted',
]

const states: Record<LogState, [text: string, kind: 'good' | 'warn' | 'bad' | 'quiet']> = {
  connecting: ['connecting …', 'quiet'],
  following: ['following', 'good'],
  waiting: ['connecting again …', 'warn'],
  paused: ['paused', 'quiet'],
  failed: ['ended', 'bad'],
}

/** The screen of events. */
export function EventsScreen() {
  const log = useLog()
  const [text, kind] = states[log.state]
  return (
    <>
      <ScreenTitle
        title="Events"
        note="Every change of files, buckets, functions and followed records, as it is committed"
      >
        <button type="button" class="button" disabled={log.state === 'failed'} onClick={() => log.pause(!log.isPaused)}>
          {log.isPaused ? 'Continue' : 'Pause'}
        </button>
        <button type="button" class="button" disabled={log.events.length === 0} onClick={log.clear}>
          Clear
        </button>
      </ScreenTitle>
      <Card
        title="Stream"
        actions={
          <span role="status" class="stream-state">
            <Badge text={text} kind={kind} />
            {log.position !== undefined && (
              <span>
                position <code>{log.position}</code>
              </span>
            )}
          </span>
        }
      >
        <Filters onBegin={log.begin} />
        {log.error !== undefined && <ErrorBox error={log.error} onRetry={log.retry} />}
      </Card>
      <Card title="Events" actions={<Shown count={log.events.length} />}>
        {log.events.length === 0 ? (
          <Empty title={log.isPaused ? 'The view is paused.' : 'No event has arrived.'}>
            {log.isPaused
              ? 'When you continue, all events since the pause arrive.'
              : 'Change a file, or a record of a collection with events. The newest event is at the top.'}
          </Empty>
        ) : (
          <ol class="events" aria-label="Events" reversed>
            {log.events.map((event) => (
              <Event key={event.id} event={event} />
            ))}
          </ol>
        )}
      </Card>
    </>
  )
}

function Shown({ count }: { count: number }) {
  if (count === 0) return null
  return (
    <span class="dim">
      {wholeNumber(count)} {count === 1 ? 'event' : 'events'}
    </span>
  )
}

function Filters({ onBegin }: { onBegin: (filter: LogFilter, position: string | undefined) => void }) {
  const [filter, setFilter] = useState<LogFilter>({ type: '', bucket: '', collection: '' })
  const [position, setPosition] = useState('')
  const field = (label: string, value: string, onInput: (value: string) => void, more: Record<string, string>) => (
    <label>
      <span>{label}</span>
      <input
        type="text"
        value={value}
        autocomplete="off"
        spellcheck={false}
        autocapitalize="off"
        {...more}
        onInput={(event) => onInput(event.currentTarget.value)}
      />
    </label>
  )
  const part = (name: keyof LogFilter) => (value: string) => setFilter({ ...filter, [name]: value })
  return (
    <form
      class="filters event-filters"
      onSubmit={(event) => {
        event.preventDefault()
        onBegin(filter, position === '' ? undefined : position)
      }}
    >
      <datalist id="event-types">
        {types.map((type) => (
          <option key={type} value={type} />
        ))}
      </datalist>
      {field('Types', filter.type, part('type'), { list: 'event-types', placeholder: 'all' })}
      {field('Buckets', filter.bucket, part('bucket'), { placeholder: 'all' })}
      {field('Collections', filter.collection, part('collection'), { placeholder: 'all' })}
      {field('After position', position, (value) => setPosition(value.trim()), {
        placeholder: 'now',
        inputmode: 'numeric',
      })}
      <button type="submit" class="button primary">
        Follow
      </button>
    </form>
  )
}

const kinds: [pattern: RegExp, kind: 'good' | 'bad' | 'info'][] = [
  [/\.(?:created|inserted|deployed)$/, 'good'],
  [/\.(?:deleted|emptied|urls_revoked)$/, 'bad'],
]

function Event({ event: { id, type, timestamp, subject, text } }: { event: ShownEvent }) {
  const [isOpen, setOpen] = useState(false)
  return (
    <li>
      <details onToggle={(event) => setOpen(event.currentTarget.open)}>
        <summary>
          <time dateTime={timestamp}>{timestamp?.slice(11, 23) ?? '–'}</time>
          <Badge text={type} kind={kinds.find(([pattern]) => pattern.test(type))?.[1] ?? 'info'} />
          <span class="event-subject">{subject}</span>
          <span class="event-id">{id}</span>
        </summary>
        {isOpen && (
          <>
            <pre class="preview" tabIndex={0} aria-label={`Event ${id} as JSON`}>
              {indentJson(text)}
            </pre>
            <CopyButton text={text} label="Copy the JSON" />
          </>
        )}
      </details>
    </li>
  )
}
