// New names of blobs. Consecutive names begin with the same byte and so are in the same directory (local.ts), whose fsync
// then serves several concurrent uploads.

const idsPerShard = 64

/** Creates a source of names from UUIDs. */
export function blobIds(randomUUID: () => string): () => string {
  let shard = ''
  let remaining = 0
  return () => {
    const id = randomUUID()
    if (remaining === 0) {
      shard = id.slice(0, 2)
      remaining = idsPerShard
    }
    remaining--
    return shard + id.slice(2)
  }
}
