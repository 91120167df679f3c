// Fresh names of blobs. Some that follow each other begin with the same byte, and so lie in the same directory (local.ts):
// of uploads at the same time one fsync of it serves many.

const together = 64

export function blobIds(randomUUID: () => string): () => string {
  let shard = ''
  let left = 0
  return () => {
    const id = randomUUID()
    if (left === 0) {
      shard = id.slice(0, 2)
      left = together
    }
    left--
    return shard + id.slice(2)
  }
}
