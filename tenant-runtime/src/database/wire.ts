// The messages of Postgres' protocol that trips send.

/** What node-postgres hands a submittable; its own types leave the protocol messages out. */
export interface Wire {
  stream: { cork(): void; uncork(): void; pause(): void; resume(): void; destroy(): void }
  parse(message: { text: string; name: string }): void
  /** Without a portal's name, to the one that the next Bind replaces. */
  bind(message: { portal?: string; statement: string; values: (string | Buffer | null)[] }): void
  describe(message: { type: 'P'; name: string }): void
  /** At most so many rows; without `rows`, all. */
  execute(message: { portal: string; rows?: number }): void
  close(message: { type: 'S'; name: string }): void
  sync(): void
  flush(): void
  once(event: 'readyForQuery' | 'end', listener: (message?: { status?: string }) => void): void
  off(event: 'end', listener: () => void): void
}
