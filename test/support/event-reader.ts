// A reader of server-sent events, as a browser is one.
import { once } from 'node:events'
import { request, type IncomingMessage } from 'node:http'
import type { TestTenant } from './runtime.ts'

export interface SentEvent {
  id: string
  event: string | undefined
  data: Record<string, unknown>
}

/** The answer's head, whatever it says. */
export async function openStream(
  { port }: Pick<TestTenant, 'port'>,
  path: string,
  headers: Record<string, string>,
): Promise<IncomingMessage> {
  const asked = request({ host: '127.0.0.1', port, path, agent: false, headers })
  asked.on('error', () => undefined)
  asked.end()
  const [answer] = (await once(asked, 'response')) as [IncomingMessage]
  return answer
}

export class EventReader {
  readonly events: SentEvent[] = []
  readonly answer: IncomingMessage
  /** The last id, of events and of heartbeats. */
  lastId = ''
  isOver = false
  #rest = ''

  constructor(answer: IncomingMessage) {
    this.answer = answer
    answer.once('close', () => (this.isOver = true))
    answer.on('error', () => undefined)
    answer.setEncoding('utf8').on('data', (text: string) => this.#take(text))
  }

  /** Waits until it is connected. @throws Error for any other status than 200 */
  static async open(tenant: TestTenant, path: string, headers: Record<string, string>): Promise<EventReader> {
    const answer = await openStream(tenant, path, headers)
    if (answer.statusCode !== 200) throw new Error(`answered ${answer.statusCode}`)
    const reader = new EventReader(answer)
    await reader.#until(() => reader.lastId !== '')
    return reader
  }

  /** So many events, or the end of the stream. */
  async until(count: number, seconds = 20): Promise<SentEvent[]> {
    await this.#until(() => this.isOver || this.events.length >= count, seconds)
    return this.events
  }

  async untilOver(): Promise<SentEvent[]> {
    await this.#until(() => this.isOver)
    return this.events
  }

  leave(): void {
    this.answer.destroy()
  }

  async #until(isSo: () => boolean, seconds = 20): Promise<void> {
    const deadline = Date.now() + seconds * 1000
    while (!isSo()) {
      if (this.isOver || Date.now() > deadline)
        throw new Error(
          `the stream ${this.isOver ? 'ended' : 'stood still'} after ${this.events.length} events: ` +
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
