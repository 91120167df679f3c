// The body of an upload: raw bytes, or a form with one file.
import { Busboy } from '@fastify/busboy'
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import type { Readable } from 'node:stream'
import { RuntimeError } from '../../errors.ts'

interface UploadForm {
  cacheControl: string
  /** The encoding of the bytes, which are not decoded; null without one. */
  contentEncoding: string | null
  metadata: Record<string, unknown>
}

/** Time without a byte after which the request ends. */
const silenceMilliseconds = 30_000
/** Longest time of an upload; shorter than the age at which an intent counts as abandoned (collector.ts). */
const maxMilliseconds = 30 * 60_000
const maxMetadataBytes = 64 * 1024

interface UploadSource {
  source: Readable
  contentType: string
  /** Bytes; undefined if the sender does not declare them. */
  declaredSize: number | undefined
  /** Upper bound of the size in bytes: the length of the form that has the file. */
  maxBytes: number | undefined
}

/**
 * Reads an upload and returns its fields, which may follow the file.
 * @param take receives the file's bytes and type
 * @throws RuntimeError BAD_REQUEST, BODY_TOO_LARGE, REQUEST_TIMEOUT; the error of `take`
 */
export async function readUploadBody(
  request: IncomingMessage,
  take: (file: UploadSource) => Promise<void>,
): Promise<UploadForm> {
  const { headers } = request
  const timer = watchSender(request)
  try {
    if (isForm(headers)) return await readForm(request, take)
    await take({
      source: request,
      contentType: mediaType(headers['content-type']),
      declaredSize: declaredSize(headers),
      maxBytes: undefined,
    })
    return {
      cacheControl: cacheControlOf(headers['cache-control']),
      contentEncoding: contentEncodingOf(headers['content-encoding']),
      metadata: metadataOf(decodeHeader(headers['x-metadata'])),
    }
  } finally {
    timer.stop()
  }
}

function readForm(request: IncomingMessage, take: Parameters<typeof readUploadBody>[1]): Promise<UploadForm> {
  return new Promise((resolve, reject) => {
    const fields = new Map<string, string>()
    let taking: Promise<void> | undefined
    let file: Readable | undefined
    let form: InstanceType<typeof Busboy>
    const fail = (error: Error) => {
      request.unpipe(form)
      request.resume()
      // The reader of the file must receive the error too, and release its resources before the caller continues.
      file?.destroy(error)
      void Promise.allSettled([taking]).then(() => reject(error))
    }
    const malformed = (cause: unknown) =>
      fail(cause instanceof RuntimeError ? cause : new RuntimeError('BAD_REQUEST', 'The form is malformed.', { cause }))
    try {
      form = new Busboy({
        headers: { ...request.headers, 'content-type': request.headers['content-type'] ?? '' },
        limits: { parts: 10, files: 1, fieldSize: maxMetadataBytes, headerPairs: 20 },
      })
    } catch (cause) {
      fail(
        new RuntimeError('BAD_REQUEST', 'Content-Type must have the boundary of multipart/form-data.', {
          cause,
        }),
      )
      return
    }
    form.on('field', (name, value) => fields.set(name, value))
    form.on('file', (_name, stream, _filename, _encoding, mimeType) => {
      file = stream.on('error', malformed)
      taking = (async () =>
        take({
          source: stream,
          contentType: mediaType(mimeType),
          declaredSize: undefined,
          maxBytes: declaredSize(request.headers),
        }))()
      taking.catch(fail)
    })
    form.on('error', malformed)
    form.on('finish', () => {
      if (taking === undefined) {
        fail(new RuntimeError('BAD_REQUEST', 'The form has no file.'))
        return
      }
      taking.then(() => {
        try {
          const cacheControl = fields.get('cacheControl')
          resolve({
            cacheControl:
              cacheControl === undefined
                ? defaultCacheControl
                : cacheControlOf(/^\d+$/.test(cacheControl) ? `max-age=${cacheControl}` : cacheControl),
            contentEncoding: contentEncodingOf(fields.get('contentEncoding')),
            metadata: metadataOf(fields.get('metadata')),
          })
        } catch (error) {
          malformed(error)
        }
      }, fail)
    })
    request.once('aborted', () => fail(new RuntimeError('BAD_REQUEST', 'The sender closed the connection.')))
    request.pipe(form)
  })
}

function isForm(headers: IncomingHttpHeaders): boolean {
  return /^multipart\/form-data\b/i.test(headers['content-type'] ?? '')
}

const mimeGrammar = /^[\w!#$&^.+-]+\/[\w!#$&^.+-]+(?:\s*;\s*[\w!#$&^.+-]+=(?:[\w!#$&^.+-]+|"[ !#-[\]-~]*"))*$/

/** Validates a media type, and returns the default for an empty one. @throws RuntimeError BAD_REQUEST */
export function mediaType(text = ''): string {
  const type = text.trim() === '' ? 'application/octet-stream' : text.trim()
  if (!mimeGrammar.test(type) || type.length > 255)
    throw new RuntimeError('BAD_REQUEST', 'Content-Type is not a valid media type.')
  return type
}

function declaredSize(headers: IncomingHttpHeaders): number | undefined {
  const length = headers['content-length']
  return length === undefined ? undefined : Number(length)
}

const defaultCacheControl = 'max-age=3600'

/** Validates Cache-Control, and returns the default for an empty value. @throws RuntimeError BAD_REQUEST */
export function cacheControlOf(value: string | undefined): string {
  if (value === undefined || value === '') return defaultCacheControl
  if (!/^[\w=, "-]{1,200}$/.test(value)) throw new RuntimeError('BAD_REQUEST', 'Cache-Control is malformed.')
  return value
}

/** Validates Content-Encoding, and returns null for an empty value. @throws RuntimeError BAD_REQUEST */
export function contentEncodingOf(value: string | undefined): string | null {
  if (value === undefined || value === '') return null
  if (!/^[\w, -]{1,100}$/.test(value)) throw new RuntimeError('BAD_REQUEST', 'Content-Encoding is malformed.')
  return value
}

/** Decodes the header `x-metadata`. */
export function decodeHeader(value: string | string[] | undefined): string | undefined {
  return typeof value === 'string' ? Buffer.from(value, 'base64').toString('utf8') : undefined
}

/** Parses a user's metadata of an object. @throws RuntimeError BAD_REQUEST, BODY_TOO_LARGE */
export function metadataOf(text: string | undefined): Record<string, unknown> {
  if (text === undefined || text === '') return {}
  if (Buffer.byteLength(text) > maxMetadataBytes)
    throw new RuntimeError('BODY_TOO_LARGE', `The metadata is larger than ${maxMetadataBytes} bytes.`)
  try {
    const value: unknown = JSON.parse(text)
    if (typeof value === 'object' && value !== null && !Array.isArray(value) && !text.includes('\\u0000'))
      return value as Record<string, unknown>
  } catch {
    // The error below has the message.
  }
  throw new RuntimeError('BAD_REQUEST', 'The metadata is not a valid JSON object.')
}

/** Ends a request whose sender stops sending before the end of the body, or exceeds the longest time of an upload. */
function watchSender(request: IncomingMessage): { stop(): void } {
  const limit = setTimeout(
    () =>
      request.destroy(
        new RuntimeError('REQUEST_TIMEOUT', `The upload took longer than ${maxMilliseconds / 60_000} minutes.`),
      ),
    maxMilliseconds,
  )
  const timer = setTimeout(
    () => request.destroy(new RuntimeError('REQUEST_TIMEOUT', 'The sender stopped sending.')),
    silenceMilliseconds,
  )
  const received = () => {
    timer.refresh()
  }
  request.on('data', received)
  // The listener must not start the stream before its reader does.
  request.pause()
  return {
    stop() {
      clearTimeout(timer)
      clearTimeout(limit)
      request.off('data', received)
    },
  }
}
