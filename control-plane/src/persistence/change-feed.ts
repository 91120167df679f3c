// NOTIFYs of the control database as calls: one connection that listens, and begins anew when it is lost.
import pg from 'pg'
import { changeChannels, type ChangeKind } from './change-channels.ts'

const kinds = Object.keys(changeChannels) as ChangeKind[]

export interface ChangeFeedOptions {
  url: string
  onProblem: (error: Error) => void
}

export interface Change {
  kind: ChangeKind
  tenantId: string
}

/** `'resync'` is told when the feed begins and after a gap in it: whoever listens must look for itself. */
export type ChangeListener = (change: Change | 'resync') => void

export class ChangeFeed {
  readonly #options: ChangeFeedOptions
  readonly #listeners = new Set<ChangeListener>()

  constructor(options: ChangeFeedOptions) {
    this.#options = options
  }

  /** @returns a function that ends the subscription */
  subscribe(listener: ChangeListener): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  /** Resolves when `tenantId` was observed, on a resync, or when the signal aborts. Subscribes at once. */
  next(tenantId: string, signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const done = () => {
        unsubscribe()
        signal.removeEventListener('abort', done)
        resolve()
      }
      const unsubscribe = this.subscribe((change) => {
        if (change === 'resync' || (change.kind === 'observed' && change.tenantId === tenantId)) done()
      })
      signal.addEventListener('abort', done)
      if (signal.aborted) done()
    })
  }

  async run(signal: AbortSignal): Promise<void> {
    const stopped = () => signal.aborted
    while (!stopped()) {
      try {
        await this.#listen(signal)
      } catch (cause) {
        if (stopped()) return
        this.#options.onProblem(new Error('the change feed was lost', { cause }))
        await new Promise((resolve) => setTimeout(resolve, 500))
      }
    }
  }

  async #listen(signal: AbortSignal): Promise<void> {
    const client = new pg.Client({
      connectionString: this.#options.url, application_name: 'tenantry-change-feed', connectionTimeoutMillis: 5_000, keepAlive: true,
    })
    const lost = Promise.withResolvers<never>()
    // Nobody may be waiting yet when the connection breaks.
    lost.promise.catch(() => undefined)
    client.on('error', (error) => lost.reject(error))
    client.on('end', () => lost.reject(new Error('the connection ended')))
    client.on('notification', ({ channel, payload }) => {
      const kind = kinds.find((kind) => changeChannels[kind] === channel)
      if (payload !== undefined && kind !== undefined) this.#tell({ kind, tenantId: payload })
    })
    const stop = () => lost.reject(new Error('stopped'))
    signal.addEventListener('abort', stop)
    try {
      await client.connect()
      await client.query(kinds.map((kind) => `listen ${changeChannels[kind]}`).join('; '))
      this.#tell('resync')
      await lost.promise
    } finally {
      signal.removeEventListener('abort', stop)
      client.end().catch(() => undefined)
    }
  }

  #tell(change: Change | 'resync'): void {
    for (const listener of [...this.#listeners]) listener(change)
  }
}
