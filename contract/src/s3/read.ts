// Reads objects that never change. If the connection breaks, the rest is requested.
import { Readable } from 'node:stream'
import { GetObjectCommand } from '@aws-sdk/client-s3'
import type { S3Connection } from './connection.ts'

/** After this time without a byte, the rest of a download is requested again. */
const silenceMilliseconds = 15_000
/** Failures of a download in a row, without a byte between them. */
const maxFailures = 3

/** A range of an object, and how it is read. */
export interface ReadRange {
  start: number
  /** The last byte. */
  end: number
  /** The body of a request for the range that was sent already. */
  first?: Readable | undefined
  /** Returns the error for an object that does not exist. */
  missing: () => Error
}

/** Requests a range, to the end of the object if `end` is undefined. @returns undefined if the object does not exist */
export async function getObject(
  connection: S3Connection,
  key: string,
  start: number,
  end: number | undefined,
): Promise<Readable | undefined> {
  const range = start === 0 && end === undefined ? {} : { Range: `bytes=${start}-${end ?? ''}` }
  const response = await connection.find((client, options) =>
    client.send(new GetObjectCommand({ Bucket: connection.bucket, Key: key, ...range }), options),
  )
  if (response === undefined) return undefined
  if (!(response.Body instanceof Readable))
    throw connection.errorOf(new Error('The S3 server returned an invalid response.'))
  // Readers receive the error anyway; without this handler, a body that is no longer read would end the process.
  return response.Body.on('error', () => undefined)
}

/** Reads a range. If the connection breaks, requests the rest. @throws the error of `missing`; of the connection's `errorOf` */
export async function* readObject(
  connection: S3Connection,
  key: string,
  { start, end, first, missing }: ReadRange,
): AsyncGenerator<Buffer, undefined> {
  let body = first
  let at = start
  for (let failures = 0; at <= end;) {
    const present: Readable | undefined = body ?? (await getObject(connection, key, at, end))
    body = undefined
    if (present === undefined) throw missing()
    try {
      for await (const chunk of withTimeout(present)) {
        const wanted = chunk.subarray(0, end - at + 1)
        at += wanted.length
        failures = 0
        yield wanted
        if (at > end) break
      }
      if (at <= end) throw new Error('The server ended the download.')
    } catch (cause) {
      if (++failures >= maxFailures) throw connection.errorOf(cause)
    } finally {
      present.destroy()
    }
  }
}

/** Yields the body's chunks. @throws Error if none arrives in time */
export async function* withTimeout(body: Readable): AsyncGenerator<Buffer, undefined> {
  const chunks = (body as AsyncIterable<Buffer>)[Symbol.asyncIterator]()
  for (;;) {
    const timer = setTimeout(() => body.destroy(new Error('The server stopped sending.')), silenceMilliseconds)
    const next = await chunks.next().finally(() => clearTimeout(timer))
    if (next.done === true) return
    yield next.value
  }
}
