// Reads server-sent events from the body of a response. `EventSource` cannot send the session's token.

/** An event of a stream. An `id` alone moves the position, and has no data. */
export interface StreamedEvent {
  id: string | undefined
  /** The name of the event; empty for one without. */
  event: string
  data: string | undefined
}

/** Yields the events of a stream until it ends. @throws Error when the connection is lost or aborted */
export async function* readStream(body: ReadableStream<Uint8Array>): AsyncGenerator<StreamedEvent> {
  const reader = body.getReader()
  const decoder = new TextDecoder()
  let rest = ''
  try {
    for (;;) {
      const { done, value } = await reader.read()
      if (done) return
      rest += decoder.decode(value, { stream: true })
      const blocks = rest.split('\n\n')
      rest = blocks.pop() ?? ''
      for (const block of blocks) yield toEvent(block)
    }
  } finally {
    reader.cancel().catch(() => undefined)
  }
}

function toEvent(block: string): StreamedEvent {
  const valuesOf = (name: string) =>
    block.split('\n').flatMap((line) => (line.startsWith(`${name}: `) ? [line.slice(name.length + 2)] : []))
  const data = valuesOf('data')
  return {
    id: valuesOf('id').at(-1),
    event: valuesOf('event').at(-1) ?? '',
    data: data.length === 0 ? undefined : data.join('\n'),
  }
}
