// One stream of changes for the whole page. Screens subscribe to the tenants that they show.

type Listener = (tenantIds: readonly string[] | undefined) => void

const listeners = new Set<Listener>()
const stateListeners = new Set<(isLive: boolean) => void>()
let source: EventSource | undefined
let isLive = false

/** Calls the listener with the IDs of changed tenants, or with undefined if any may have changed. */
export function onChanges(listener: Listener): () => void {
  listeners.add(listener)
  return () => listeners.delete(listener)
}

/** Calls the listener with whether changes are received now, and at each change of that. */
export function onLiveState(listener: (isLive: boolean) => void): () => void {
  stateListeners.add(listener)
  listener(isLive)
  return () => stateListeners.delete(listener)
}

/** Connects to the stream, or disconnects from it. The browser reconnects by itself after a lost connection. */
export function followChanges(follow: boolean): void {
  if (!follow) {
    source?.close()
    source = undefined
    report(false)
    return
  }
  if (source === undefined) connect(false)
}

/** Milliseconds before a stream that ended for good is opened again. */
const retryMilliseconds = 5_000

/** @param hasMissed whether there may be changes that the page has not received */
function connect(hasMissed: boolean): void {
  const opened = new EventSource('/v1/changes')
  source = opened
  let wasLive = hasMissed
  opened.addEventListener('open', () => {
    report(true)
    // Changes of the time without a connection are unknown.
    if (wasLive) for (const listener of [...listeners]) listener(undefined)
    wasLive = true
  })
  opened.addEventListener('error', () => {
    report(false)
    // After a response with an error, the browser does not try again.
    if (opened.readyState !== EventSource.CLOSED) return
    setTimeout(() => {
      if (source === opened) connect(true)
    }, retryMilliseconds)
  })
  opened.addEventListener('change', (event) => {
    const { tenant_ids: ids } = JSON.parse(String(event.data)) as { tenant_ids: string[] | null }
    for (const listener of [...listeners]) listener(ids ?? undefined)
  })
}

function report(live: boolean): void {
  isLive = live
  for (const listener of [...stateListeners]) listener(live)
}
