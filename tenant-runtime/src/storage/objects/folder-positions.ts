// A bounded cache of positions in folder listings: the number of entries up to a key. A page with an offset starts at the
// nearest known position, and its statement checks that the bucket's contents are still the same. Pure.

export interface Position {
  /** Number of entries up to and including the key. */
  passed: number
  /** An object's path, or a folder's key in the table. */
  key: string
  isFolder: boolean
}

export interface KnownPosition {
  position: Position
  /** Version of the bucket's contents (migrations/009_bucket_contents.sql). */
  contents: string
}

interface Listing {
  contents: string
  /** Positions in the order of `passed`, without duplicates. */
  positions: Position[]
  bytes: number
}

interface PositionLimits {
  /** Maximum of one listing. Beyond it, every second position is evicted. */
  positions: number
  /** Maximum of all keys and names. Beyond it, the least recently used listing is evicted. */
  bytes: number
}

const defaultPositionLimits: PositionLimits = { positions: 512, bytes: 8 * 1024 * 1024 }

/** Estimated bytes of a position in addition to its key, and of a listing in addition to its name. */
const overheadBytes = 100

export class FolderPositions {
  readonly #limits: PositionLimits
  /** Listings by name, least recently used first. */
  readonly #listings = new Map<string, Listing>()
  #bytes = 0

  constructor(limits: PositionLimits = defaultPositionLimits) {
    this.#limits = limits
  }

  /** Estimated bytes of all listings; never above the limit. */
  get bytes(): number {
    return this.#bytes
  }

  /** Returns the last known position at or before an offset. */
  nearest(name: string, offset: number): KnownPosition | undefined {
    const listing = this.#listings.get(name)
    if (listing === undefined) return undefined
    this.#listings.delete(name)
    this.#listings.set(name, listing)
    const position = listing.positions[countUpTo(listing.positions, offset) - 1]
    return position === undefined ? undefined : { position, contents: listing.contents }
  }

  /** Adds positions of a listing. Positions of other contents of the bucket are evicted. */
  remember(name: string, contents: string, positions: readonly Position[]): void {
    const known = this.#listings.get(name)
    this.#evict(name)
    const listing: Listing = known?.contents === contents ? known : { contents, positions: [], bytes: sizeBytes(name) }
    for (const position of positions) {
      const at = countUpTo(listing.positions, position.passed)
      if (listing.positions[at - 1]?.passed === position.passed) continue
      // The new position stays, because the next page is likely to begin there.
      if (listing.positions.length >= this.#limits.positions)
        listing.positions = listing.positions.filter((_, n) => n % 2 === 1)
      listing.positions.splice(countUpTo(listing.positions, position.passed), 0, position)
    }
    listing.bytes = listing.positions.reduce((sum, { key }) => sum + sizeBytes(key), sizeBytes(name))
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

/** Counts the positions at or before an offset. */
function countUpTo(positions: readonly Position[], offset: number): number {
  let [low, high] = [0, positions.length]
  while (low < high) {
    const middle = (low + high) >> 1
    if ((positions[middle]?.passed ?? 0) <= offset) low = middle + 1
    else high = middle
  }
  return low
}

function sizeBytes(text: string): number {
  return 2 * text.length + overheadBytes
}
