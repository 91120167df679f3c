// Frees the memory of buffers at once. The garbage collector would let it accumulate, and then examine the whole heap.

/**
 * Frees the memory of a chunk that nothing uses any more. A chunk that shares its memory with others is left to the garbage
 * collector.
 */
export function releaseMemory({ buffer, byteLength }: Uint8Array): void {
  if (buffer instanceof ArrayBuffer && buffer.byteLength === byteLength) buffer.transfer(0)
}
