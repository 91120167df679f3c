// The logs of a tenant's own services: follow, search, wrap, download. Lines are shown as text.
import { useEffect, useMemo, useRef, useState } from 'preact/hooks'
import type { LogLine, Tenant } from '../api/types.ts'
import { useLoad } from '../api/use-load.ts'
import { wholeNumber } from '../format/numbers.ts'
import { Badge, Card } from '../parts/basics.tsx'
import { Empty, ErrorBox, Notice } from '../parts/feedback.tsx'
import type { TabProps } from './tab-props.ts'

/** Maximum number of lines in the page. The oldest are removed for new ones. */
const maxLines = 5_000

const services: Record<string, string[]> = {
  'database-per-tenant': ['runtime', 'postgres'],
  'cluster-per-tenant': ['runtime-1', 'runtime-2', 'postgres-1', 'postgres-2', 'postgres-3', 'router-1', 'router-2'],
}

/** The tab of logs. */
export function LogsTab({ tenant }: TabProps) {
  const components = services[tenant.isolation]
  if (components === undefined)
    return (
      <Card title="Logs">
        <Empty title="This tenant has no services of its own.">
          Tenants of a shared database use the region's runtime, whose log belongs to all of them. A tenant with the
          isolation database-per-tenant has logs of its own.
        </Empty>
      </Card>
    )
  return <Logs tenant={tenant} components={components} />
}

function Logs({ tenant, components }: { tenant: Tenant; components: string[] }) {
  const [component, setComponent] = useState(components[0] ?? '')
  const [tail, setTail] = useState('200')
  const [isFollowing, setFollowing] = useState(true)
  const [isWrapped, setWrapped] = useState(true)
  const [search, setSearch] = useState('')
  const path = `/v1/tenants/${encodeURIComponent(tenant.tenant_id)}/logs?component=${component}&tail=${tail}`
  const { lines, end, isConnected, error } = useLog(path, isFollowing)
  const found = useMemo(() => {
    const wanted = search.toLowerCase()
    return wanted === '' ? lines : lines.filter(({ text }) => text.toLowerCase().includes(wanted))
  }, [lines, search])
  const download = () => {
    const text = found.map(({ at, stream, text: line }) => `${at} ${stream} ${line}\n`).join('')
    const url = URL.createObjectURL(new Blob([text], { type: 'text/plain' }))
    const link = document.createElement('a')
    link.href = url
    link.download = `${tenant.name}-${component}.log`
    link.click()
    URL.revokeObjectURL(url)
  }
  return (
    <Card
      title="Logs"
      actions={
        isFollowing ? (
          <Badge text={isConnected ? 'following' : 'connecting …'} kind={isConnected ? 'good' : 'quiet'} />
        ) : undefined
      }
    >
      <div class="filters">
        <label>
          <span>Service</span>
          <select value={component} onInput={(event) => setComponent(event.currentTarget.value)}>
            {components.map((one) => (
              <option key={one} value={one}>
                {one}
              </option>
            ))}
          </select>
        </label>
        <label>
          <span>Last lines</span>
          <select value={tail} onInput={(event) => setTail(event.currentTarget.value)}>
            {['100', '200', '500', '1000'].map((one) => (
              <option key={one} value={one}>
                {one}
              </option>
            ))}
          </select>
        </label>
        <label class="filter-search">
          <span>Search</span>
          <input
            type="search"
            value={search}
            placeholder="A part of a line"
            onInput={(event) => setSearch(event.currentTarget.value)}
          />
        </label>
        <label class="check">
          <input type="checkbox" checked={isFollowing} onInput={(event) => setFollowing(event.currentTarget.checked)} />
          <span>Follow</span>
        </label>
        <label class="check">
          <input type="checkbox" checked={isWrapped} onInput={(event) => setWrapped(event.currentTarget.checked)} />
          <span>Wrap</span>
        </label>
        <button type="button" class="button" disabled={found.length === 0} onClick={download}>
          Download {wholeNumber(found.length)} lines
        </button>
      </div>
      {error !== undefined && <ErrorBox error={error.error} onRetry={error.retry} />}
      {end !== undefined && <Notice kind="warn">The log ended: {end}</Notice>}
      <Lines lines={found} isWrapped={isWrapped} isFollowing={isFollowing} isEmpty={lines.length === 0} />
    </Card>
  )
}

interface LinesProps {
  lines: LogLine[]
  isWrapped: boolean
  isFollowing: boolean
  isEmpty: boolean
}

function Lines({ lines, isWrapped, isFollowing, isEmpty }: LinesProps) {
  const frame = useRef<HTMLDivElement>(null)
  useEffect(() => {
    if (isFollowing && frame.current !== null) frame.current.scrollTop = frame.current.scrollHeight
  }, [lines, isFollowing])
  if (lines.length === 0)
    return isEmpty ? (
      <Empty title="No lines yet.">The service has written nothing to its log.</Empty>
    ) : (
      <Empty title="No line matches." />
    )
  return (
    <div
      class={`log ${isWrapped ? 'log-wrapped' : ''}`}
      ref={frame}
      tabIndex={0}
      role="log"
      aria-label="Log lines"
      aria-live="off"
    >
      {lines.map(({ at, stream, text }, index) => (
        <div key={`${at} ${index}`} class={`log-line log-${stream}`}>
          <time dateTime={at}>{at.slice(11, 23)}</time> <span>{text}</span>
        </div>
      ))}
    </div>
  )
}

/** Reads a log once, or follows it. */
function useLog(path: string, isFollowing: boolean) {
  const once = useLoad<{ lines: LogLine[] }>(path)
  const [followed, setFollowed] = useState<LogLine[]>([])
  const [isConnected, setConnected] = useState(false)
  const [end, setEnd] = useState<string | undefined>(undefined)
  const isReadable = once.error === undefined
  useEffect(() => {
    setFollowed([])
    setEnd(undefined)
    if (!isFollowing || !isReadable) return undefined
    const source = new EventSource(`${path}&follow=true`)
    let pending: LogLine[] = []
    let frame: number | undefined
    source.addEventListener('open', () => setConnected(true))
    source.addEventListener('error', () => {
      setConnected(false)
      // The browser connects again by itself after the end of a stream, but not after an error of the API, which is read here.
      if (source.readyState === EventSource.CLOSED) once.reload()
    })
    source.addEventListener('end', (event) => {
      setEnd((JSON.parse(String(event.data)) as { message: string }).message)
      source.close()
    })
    source.addEventListener('log', (event) => {
      pending.push(JSON.parse(String(event.data)) as LogLine)
      frame ??= requestAnimationFrame(() => {
        frame = undefined
        const added = pending
        pending = []
        setFollowed((before) => [...before, ...added].slice(-maxLines))
      })
    })
    return () => {
      source.close()
      setConnected(false)
      if (frame !== undefined) cancelAnimationFrame(frame)
    }
  }, [path, isFollowing, isReadable])
  const lines = isFollowing && followed.length > 0 ? followed : (once.data?.lines ?? [])
  return {
    lines,
    end,
    isConnected,
    error: once.error === undefined ? undefined : { error: once.error, retry: once.reload },
  }
}
