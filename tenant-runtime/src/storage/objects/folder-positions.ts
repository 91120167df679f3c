// What pages of folders have told of where they stood: "behind this key, so many entries are passed". Bounded; pure. None
// is trusted: whoever seeks by one asks in the same statement whether the bucket still holds what it held.

export interface Position {
  /** Entries up to the key, itself included. */
  passed: number
  /** An object's path, or a folder's key in the table. */
  key: string
  isFolder: boolean
}

export interface KnownPosition {
  position: Position
  /** What the bucket held (migrations/009_bucket_contents.sql). */
  contents: string
}

interface Listing {
  contents: string
  /** By `passed`, each once. */
  positions: Position[]
  bytes: number
}

interface PositionLimits {
  /** Of one listing; beyond it every second one goes. */
  positions: number
  /** Of all listings, keys and names together; beyond it the listing goes that was not asked for longest. */
  bytes: number
}

const defaultPositionLimits: PositionLimits = { positions: 512, bytes: 8 * 1024 * 1024 }

/** What a position takes beside its key, and a listing beside its name. */
const overhead = 100

export class FolderPositions {
  readonly #limits: PositionLimits
  /** Least recently asked for first. */
  readonly #listings = new Map<string, Listing>()
  #bytes = 0

  constructor(limits: PositionLimits = defaultPositionLimits) {
    this.#limits = limits
  }

  /** Estimated; never above the limit. */
  get bytes(): number {
    return this.#bytes
  }

  /** The last known position at or before an offset. */
  nearest(name: string, offset: number): KnownPosition | undefined {
    const listing = this.#listings.get(name)
    if (listing === undefined) return undefined
    this.#listings.delete(name)
    this.#listings.set(name, listing)
    const position = listing.positions[behind(listing.positions, offset) - 1]
    return position === undefined ? undefined : { position, contents: listing.contents }
  }

  /** What was known of other contents is forgotten. */
  remember(name: string, contents: string, positions: readonly Position[]): void {
    const known = this.#listings.get(name)
    this.#evict(name)
    const listing: Listing = known?.contents === contents ? known : { contents, positions: [], bytes: size(name) }
    for (const position of positions) {
      const at = behind(listing.positions, position.passed)
      if (listing.positions[at - 1]?.passed === position.passed) continue
      // Not the new one: the next page is likely to begin there.
      if (listing.positions.length >= this.#limits.positions)
        listing.positions = listing.positions.filter((_, n) => n % 2 === 1)
      listing.positions.splice(behind(listing.positions, position.passed), 0, position)
    }
    listing.bytes = listing.positions.reduce((sum, { key }) => sum + size(key), size(name))
    this.#listings.set(name, listing)
    this.#bytes += listing.bytes
    for (const oldest of this.#listings.keys()) {
      if (this.#bytes <= this.#limits.bytes) return
      this.#evict(oldest)
    }
  }

  #evict(name: string): void {
    this.#bytes -= this.#listings.get(name)?.bytes ?? 0
    this.#listings.delete(name)
  }
}

/** How many of the positions have passed no more than so many entries. */
function behind(positions: readonly Position[], offset: number): number {
  let [low, high] = [0, positions.length]
  while (low < high) {
    const middle = (low + high) >> 1
    if ((positions[middle]?.passed ?? 0) <= offset) low = middle + 1
    else high = middle
  }
  return low
}

function size(text: string): number {
  return 2 * text.length + overhead
}
