// Stores the body of a response in a file.
import { createWriteStream } from 'node:fs'
import { rename, rm } from 'node:fs/promises'
import { pipeline } from 'node:stream/promises'

/**
 * Writes a body to a file. The file appears when all bytes have arrived.
 * @param report receives the number of bytes so far
 * @returns the number of bytes
 */
export async function downloadTo(file: string, response: Response, report: (bytes: number) => void): Promise<number> {
  const draft = `${file}.${process.pid}.part`
  let received = 0
  try {
    await pipeline(
      response.body ?? [],
      async function* (chunks: AsyncIterable<Uint8Array>) {
        for await (const chunk of chunks) {
          received += chunk.length
          report(received)
          yield chunk
        }
      },
      createWriteStream(draft),
    )
    await rename(draft, file)
  } finally {
    await rm(draft, { force: true })
  }
  return received
}
