// A client of a topic's presence: what it tracks, and the state that it has received, kept as clients keep it.
import type { TestTenant } from '#test/support/runtime.ts'
import { RawSocket, type ReceivedFrame } from './raw-socket.ts'

type Entries = Record<string, { metas: { phx_ref: string }[] }>
interface Diff {
  joins: Entries
  leaves: Entries
}

export class PresenceClient {
  readonly raw: RawSocket
  readonly #topic: string
  readonly #ref: string

  private constructor(raw: RawSocket, topic: string, ref: string) {
    this.raw = raw
    this.#topic = topic
    this.#ref = ref
  }

  /** Joins a topic with presence. */
  static async join(
    runtime: Pick<TestTenant, 'url' | 'publishableKey'>,
    topic: string,
    key: string,
  ): Promise<PresenceClient> {
    const raw = await RawSocket.open(runtime)
    const { ref } = await raw.join(topic, { presence: { enabled: true, key }, broadcast: { ack: true } })
    const client = new PresenceClient(raw, topic, ref)
    await raw.until(({ event }) => event === 'presence_state', 'the state of presence')
    return client
  }

  async track(payload: object): Promise<void> {
    await this.raw.call(this.#topic, 'presence', { event: 'track', payload }, this.#ref)
  }

  async untrack(): Promise<void> {
    await this.raw.call(this.#topic, 'presence', { event: 'untrack' }, this.#ref)
  }

  /** Returns the references of all entries by key, sorted: the state at the join with all differences since. */
  state(): string {
    const entries = new Map<string, string>()
    const add = (added: Entries) => {
      for (const [key, { metas }] of Object.entries(added))
        for (const meta of metas) entries.set(meta.phx_ref, `${key} ${JSON.stringify(meta)}`)
    }
    for (const { event, payload } of this.raw.frames) {
      if (event === 'presence_state') {
        entries.clear()
        add(payload as unknown as Entries)
      } else if (event === 'presence_diff') {
        const { joins, leaves } = payload as unknown as Diff
        add(joins)
        for (const { metas } of Object.values(leaves)) for (const { phx_ref: ref } of metas) entries.delete(ref)
      }
    }
    return [...entries.values()].sort().join('\n')
  }

  /** Returns the keys of all entries, sorted. */
  keys(): string[] {
    return this.state()
      .split('\n')
      .flatMap((line) => (line === '' ? [] : [line.split(' ')[0] ?? '']))
  }

  /** Returns the keys of the entries that have left since the join, in order. */
  left(): string[] {
    const isDiff = ({ event }: ReceivedFrame) => event === 'presence_diff'
    return this.raw.frames.filter(isDiff).flatMap(({ payload }) => Object.keys((payload as unknown as Diff).leaves))
  }
}
