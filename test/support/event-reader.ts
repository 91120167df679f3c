// Reads server-sent events as a browser does.
import { once } from 'node:events'
import { request, type IncomingMessage } from 'node:http'
import type { TestTenant } from './runtime.ts'

export interface SentEvent {
  id: string
  event: string | undefined
  data: Record<string, unknown>
}

/** Opens a stream of events. @returns the response, whatever its status */
export async function openStream(
  { port }: Pick<TestTenant, 'port'>,
  path: string,
  headers: Record<string, string>,
): Promise<IncomingMessage> {
  const call = request({ host: '127.0.0.1', port, path, agent: false, headers })
  call.on('error', () => undefined)
  call.end()
  const [response] = (await once(call, 'response')) as [IncomingMessage]
  return response
}

export class EventReader {
  readonly events: SentEvent[] = []
  readonly response: IncomingMessage
  /** The last event ID that was received, from an event or a heartbeat. */
  lastId = ''
  isOver = false
  #rest = ''

  constructor(response: IncomingMessage) {
    this.response = response
    response.once('close', () => (this.isOver = true))
    response.on('error', () => undefined)
    response.setEncoding('utf8').on('data', (text: string) => this.#take(text))
  }

  /** Opens a stream and waits for its first ID. @throws Error when the status is not 200 */
  static async open(tenant: TestTenant, path: string, headers: Record<string, string>): Promise<EventReader> {
    const response = await openStream(tenant, path, headers)
    if (response.statusCode !== 200) throw new Error(`responded with ${response.statusCode}`)
    const reader = new EventReader(response)
    await reader.#until(() => reader.lastId !== '')
    return reader
  }

  /** Waits until `count` events have arrived, or until the stream ends. */
  async until(count: number, seconds = 20): Promise<SentEvent[]> {
    await this.#until(() => this.isOver || this.events.length >= count, seconds)
    return this.events
  }

  async untilOver(): Promise<SentEvent[]> {
    await this.#until(() => this.isOver)
    return this.events
  }

  leave(): void {
    this.response.destroy()
  }

  async #until(isSo: () => boolean, seconds = 20): Promise<void> {
    const deadline = Date.now() + seconds * 1000
    while (!isSo()) {
      if (this.isOver || Date.now() > deadline)
        throw new Error(
          `the stream ${this.isOver ? 'ended' : 'stalled'} after ${this.events.length} events: ` +
            JSON.stringify(this.events.slice(-3)),
        )
      await new Promise((resolve) => setTimeout(resolve, 2))
    }
  }

  #take(text: string): void {
    const blocks = (this.#rest + text).split('\n\n')
    this.#rest = blocks.pop() ?? ''
    for (const block of blocks) {
      const fields = new Map(
        block.split('\n').map((line) => [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 2)]),
      )
      this.lastId = fields.get('id') ?? this.lastId
      const data = fields.get('data')
      if (data !== undefined)
        this.events.push({
          id: this.lastId,
          event: fields.get('event'),
          data: JSON.parse(data) as Record<string, unknown>,
        })
    }
  }
}
