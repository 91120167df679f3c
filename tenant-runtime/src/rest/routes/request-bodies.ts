// Parses the bodies of requests: JSON, CSV and forms, and texts and bytes for functions with a single unnamed argument.
import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { Readable } from 'node:stream'
import { RuntimeError } from '../../errors.ts'
import { memoryPerByte } from '../../http/body-reader.ts'
import { parseJson } from '../../http/parse-json.ts'
import type { RequestBody } from '../plan/request-body.ts'
import { csvToJson } from '../request/read-csv.ts'
import { restError } from '../rest-error.ts'

/** The types of bodies that a function takes as a whole. */
const wholeBodies: ReadonlyMap<string, 'text' | 'xml' | 'bytea'> = new Map([
  ['text/plain', 'text'],
  ['text/xml', 'xml'],
  ['application/octet-stream', 'bytea'],
])

/** Parses bodies and also keeps their text, because Postgres reads numbers that JavaScript would round. */
export function parseBodies(app: FastifyInstance): void {
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('application/json', async (request: FastifyRequest, payload: Readable) => {
    const { bytes, charge } = await app.bodies.read(request, payload)
    const text = bytes.toString('utf8')
    return text.trim() === '' ? undefined : parsed(() => text, charge)
  })
  app.addContentTypeParser('*', async (request: FastifyRequest, payload: Readable) => {
    const { headers, url } = request
    const type = (headers['content-type'] ?? '').split(';', 1)[0]?.trim().toLowerCase() ?? ''
    const whole = url.startsWith('/rest/v1/rpc/') ? wholeBodies.get(type) : undefined
    const isForm = type === 'application/x-www-form-urlencoded'
    if (whole === undefined && !isForm && type !== 'text/csv') {
      const length = headers['content-length'] ?? (await app.bodies.read(request, payload)).bytes.length
      if (Number(length) === 0) return undefined
      throw restError('BAD_REQUEST', {
        code: 'PGRST102',
        message: `Content-Type not acceptable: ${String(headers['content-type'])}`,
        hint: 'Send application/json.',
      })
    }
    const { bytes, charge } = await app.bodies.read(request, payload)
    if (whole !== undefined)
      return {
        text: '',
        value: undefined,
        whole,
        bytes: whole === 'bytea' ? bytes : textOf(bytes),
      } satisfies RequestBody
    const text = textOf(bytes)
    if (!isForm)
      return parsed(() => csvToJson(text, (characters) => charge(characters * memoryPerByte)), charge, { isText: true })
    const pairs = [...new URLSearchParams(text)]
    return parsed(() => JSON.stringify(Object.fromEntries(pairs)), charge, { isText: true, pairs })
  })
}

function textOf(bytes: Buffer): string {
  const text = bytes.toString('utf8')
  if (text.includes('\0'))
    throw restError('BAD_REQUEST', { code: 'PGRST102', message: 'The body has a NUL character.' })
  return text
}

function parsed(
  read: () => string,
  charge: (bytes: number) => void,
  more: Pick<RequestBody, 'isText' | 'pairs'> = {},
): RequestBody {
  try {
    const text = read()
    return { text, value: parseJson(text, charge), ...more }
  } catch (error) {
    if (error instanceof RuntimeError) throw error
    throw restError('INVALID_JSON', {
      code: 'PGRST102',
      message: more.isText === true ? 'The body is not valid.' : 'The body is not valid JSON.',
      cause: error,
      ...(error instanceof Error ? { details: error.message } : {}),
    })
  }
}
