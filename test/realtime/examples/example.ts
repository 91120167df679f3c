// An example of the clients' documentation as data: its calls, and the effect that it must have.
import type * as library from '@supabase/supabase-js'
import type { RealtimeChannel, SupabaseClient } from '@supabase/supabase-js'
import type { TestTenant } from '#test/support/runtime.ts'
import { until } from '#test/support/until.ts'

/** The documentation that the examples are from. Their calls are the documented ones, their texts are not copied. */
export const sources = {
  broadcast: 'supabase.com/docs/guides/realtime/broadcast',
  presence: 'supabase.com/docs/guides/realtime/presence',
  changes: 'supabase.com/docs/guides/realtime/postgres-changes',
  subscribing: 'supabase.com/docs/guides/realtime/subscribing-to-database-changes',
  migrating: 'supabase.com/docs/guides/realtime/migrate-from-postgres-changes',
  authorization: 'supabase.com/docs/guides/realtime/authorization',
  start: 'supabase.com/docs/guides/realtime/getting_started',
  throttling: 'supabase.com/docs/guides/realtime/guides/client-side-throttling',
  reference: 'the comments of realtime-js and supabase-js, which are their reference',
  readme: 'the README of realtime-js',
} as const

export interface Example {
  name: string
  source: (typeof sources)[keyof typeof sources]
  /** Prepares what must exist before the example. */
  before?: (run: ExampleRun) => Promise<void>
  /** The documented calls, with `log` for `console.log`. */
  code: (run: ExampleRun) => unknown
  /** Causes what the example reacts to, and returns what must be equal to `expected`. */
  effect: (run: ExampleRun) => Promise<unknown>
  expected: unknown
}

interface ExampleRunOptions {
  tenant: TestTenant
  client: typeof library
  connect: (key?: string, options?: object) => SupabaseClient
}

/** One run of an example, with the clients that it uses. */
export class ExampleRun {
  readonly tenant: TestTenant
  /** The module of the client's package, in the version that is tested. */
  readonly library: typeof library
  /** Creates a client with the publishable key, or with another one. */
  readonly connect: (key?: string, options?: object) => SupabaseClient
  /** The client of the example. */
  readonly supabase: SupabaseClient
  /** Another client, which sends and receives. */
  readonly other: SupabaseClient
  /** The arguments of each call of `log`. */
  readonly logged: unknown[][] = []
  /** Messages that `other` has received. */
  readonly received: unknown[] = []

  constructor({ tenant, client, connect }: ExampleRunOptions) {
    this.tenant = tenant
    this.library = client
    this.connect = connect
    this.supabase = connect()
    this.other = connect()
  }

  readonly log = (...values: unknown[]): void => {
    this.logged.push(values)
  }

  /** Waits until the channels of a client have joined. */
  async joined(client: { getChannels(): RealtimeChannel[] } = this.supabase): Promise<void> {
    await until(
      () => client.getChannels().length > 0 && client.getChannels().every(({ state }) => state === 'joined'),
      'the channels have joined',
    )
  }

  /** Waits for calls of `log`, and returns the first argument of each. */
  async firsts(count: number): Promise<unknown[]> {
    await until(() => this.logged.length >= count, `${count} calls of log, not ${JSON.stringify(this.logged)}`)
    return this.logged.map(([value]) => value)
  }

  /** Lets the other client receive the broadcasts of a topic. */
  async listen(topic: string, options: library.RealtimeChannelOptions = { config: {} }): Promise<void> {
    this.other
      .channel(topic, options)
      .on('broadcast', { event: '*' }, ({ event, payload }) => this.received.push([event, payload]))
      .subscribe()
    await this.joined(this.other)
  }

  /** Waits for messages that the other client receives. */
  async untilReceived(count: number): Promise<unknown[]> {
    await until(() => this.received.length >= count, `${count} messages, not ${JSON.stringify(this.received)}`)
    return this.received
  }

  /** Inserts a record as the service. The first change of the tenant's events that it causes has its values. */
  async insert(table: string, record: object): Promise<void> {
    await this.#send('POST', table, record)
  }

  async update(table: string, id: number, record: object): Promise<void> {
    await this.#send('PATCH', `${table}?id=eq.${id}`, record)
  }

  async remove(table: string, id: number): Promise<void> {
    await this.#send('DELETE', `${table}?id=eq.${id}`)
  }

  async #send(method: string, path: string, body?: object): Promise<void> {
    const options = body === undefined ? { as: 'service' } : { as: 'service', body }
    const { status, text } = await this.tenant.request(method, `/rest/v1/${path}`, options)
    if (status >= 300) throw new Error(`${method} ${path}: ${status} ${text}`)
  }
}

/** Returns a record without its owner, which the collections of this service have in addition. */
export const withoutOwner = (record: object): object =>
  Object.fromEntries(Object.entries(record).filter(([name]) => name !== 'owner_id'))
