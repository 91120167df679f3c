// Reads server-sent events from the body of a response.
import { setTimeout as sleep } from 'node:timers/promises'
import { isJsonObject } from '../tenant/json.ts'
import { CommandError, exitCodes } from '../terminal/exit-codes.ts'

/** One event: its name, `message` by default, its data, and its ID if it has one. An ID may come without data. */
export interface ServerSentEvent {
  readonly event: string
  readonly data: string
  readonly id?: string
}

/** The time between the end of a stream and its next beginning. */
const retryMs = 1_000
const maxBufferedCharacters = 8 * 1024 * 1024

/**
 * Yields the events of a stream that has no end of its own.
 * @throws CommandError when the stream ends or is interrupted, with the reason if an event `end` states it
 */
export async function* followEvents(body: AsyncIterable<Uint8Array>): AsyncGenerator<ServerSentEvent> {
  try {
    yield* eventsUntilEnd(body)
  } catch (error) {
    // `fetch` reports a lost connection as a TypeError.
    throw error instanceof TypeError ? endOf(`: ${error.message}`, { cause: error }) : error
  }
  throw endOf('.')
}

/**
 * Yields the events of a stream that its server ends from time to time. The stream is opened again, after its last event.
 * @param open opens the stream, after the event with this ID if there was one
 * @throws CommandError if an event `end` states a reason, and what `open` throws
 */
export async function* followResumed(
  open: (lastId: string | undefined) => Promise<AsyncIterable<Uint8Array>>,
  signal: AbortSignal,
): AsyncGenerator<ServerSentEvent> {
  let lastId: string | undefined
  for (;;) {
    const body = await open(lastId)
    try {
      for await (const event of eventsUntilEnd(body)) {
        lastId = event.id ?? lastId
        if (event.data !== '') yield event
      }
    } catch (error) {
      if (!(error instanceof TypeError)) throw error
    }
    await sleep(retryMs, undefined, { signal })
  }
}

async function* eventsUntilEnd(body: AsyncIterable<Uint8Array>): AsyncGenerator<ServerSentEvent> {
  for await (const event of serverSentEvents(body)) {
    if (event.event === 'end') throw endOf(`: ${messageOf(event.data)}`)
    yield event
  }
}

function endOf(reason: string, options?: ErrorOptions): CommandError {
  return new CommandError(`The server has ended the stream${reason}`, exitCodes.unavailable, options)
}

function messageOf(data: string): string {
  try {
    const value: unknown = JSON.parse(data)
    return isJsonObject(value) && typeof value.message === 'string' ? value.message : data
  } catch {
    return data
  }
}

/** Yields the events of a stream until it ends. @throws Error if one event is too large */
async function* serverSentEvents(body: AsyncIterable<Uint8Array>): AsyncGenerator<ServerSentEvent> {
  const decoder = new TextDecoder()
  let buffered = ''
  for await (const chunk of body) {
    buffered += decoder.decode(chunk, { stream: true })
    const blocks = buffered.split(/\r?\n\r?\n/)
    buffered = blocks.pop() ?? ''
    if (buffered.length > maxBufferedCharacters)
      throw new Error(`An event of the stream is larger than ${maxBufferedCharacters} characters.`)
    for (const block of blocks) {
      const event = parseEvent(block)
      if (event !== undefined) yield event
    }
  }
}

function parseEvent(block: string): ServerSentEvent | undefined {
  let event = 'message'
  let id: string | undefined
  const data: string[] = []
  for (const line of block.split(/\r?\n/)) {
    if (line.startsWith('id:')) id = line.slice(3).trim()
    if (line.startsWith('event:')) event = line.slice(6).trim()
    if (line.startsWith('data:')) data.push(line.slice(5).replace(/^ /, ''))
  }
  if (data.length === 0 && id === undefined) return undefined
  return { event, data: data.join('\n'), ...(id === undefined ? {} : { id }) }
}
