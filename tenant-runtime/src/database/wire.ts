// The messages of Postgres' protocol that round trips send.

/** The connection that node-postgres passes to a submittable, with the protocol messages that its own types omit. */
export interface Wire {
  stream: { cork(): void; uncork(): void; pause(): void; resume(): void; destroy(): void }
  parse(message: { text: string; name: string }): void
  /** Binds to a portal; without a name, to the unnamed one, which the next Bind replaces. */
  bind(message: { portal?: string; statement: string; values: (string | Buffer | null)[] }): void
  describe(message: { type: 'P'; name: string }): void
  /** Executes up to `rows` rows; without `rows`, all. */
  execute(message: { portal: string; rows?: number }): void
  close(message: { type: 'S'; name: string }): void
  sync(): void
  flush(): void
  once(event: 'readyForQuery' | 'end', listener: (message?: { status?: string }) => void): void
  off(event: 'end', listener: () => void): void
}
