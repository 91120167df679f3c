// The entries of presence that one other runtime has sent for one tenant, through interruptions of the link. Pure.
import type { TopicName } from './relay-frame.ts'

/** An entry of another runtime: its reference and its topic. */
export interface RemoteEntry extends TopicName {
  ref: string
}

export class RemoteEntries {
  readonly #entries = new Map<string, RemoteEntry>()
  /** References of entries that the other runtime has not sent since the link was opened. */
  #unconfirmed = new Set<string>()

  /** Begins a new transfer of all entries. What it does not contain is removed at its end. */
  begin(): void {
    this.#unconfirmed = new Set(this.#entries.keys())
  }

  /** Adds an entry. Returns false when it is already there. */
  add(entry: RemoteEntry): boolean {
    this.#unconfirmed.delete(entry.ref)
    if (this.#entries.has(entry.ref)) return false
    this.#entries.set(entry.ref, entry)
    return true
  }

  /** Removes an entry, and returns it; undefined when there is none. */
  remove(ref: string): RemoteEntry | undefined {
    const entry = this.#entries.get(ref)
    this.#entries.delete(ref)
    this.#unconfirmed.delete(ref)
    return entry
  }

  /** Ends a transfer: removes and returns the entries that were not part of it. */
  end(): RemoteEntry[] {
    return [...this.#unconfirmed].flatMap((ref) => this.remove(ref) ?? [])
  }

  /** Removes and returns all entries. */
  clear(): RemoteEntry[] {
    this.begin()
    return this.end()
  }
}
