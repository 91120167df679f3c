// Reads the multipart form of a deployment: texts and one module. Rejects parts that are unknown, repeated or too long.
import type { IncomingMessage } from 'node:http'
import { Busboy } from '@fastify/busboy'
import { RuntimeError } from '../../errors.ts'
import { maxModuleBytes } from '../module/check-module.ts'

const texts = ['name', 'description', 'trigger', 'config', 'enabled'] as const
type TextPart = (typeof texts)[number]

export type DeployForm = Partial<Record<TextPart, string>> & { wasm?: Buffer }

const maxTextBytes = 64 * 1024

/** Reads a deployment. @throws RuntimeError INVALID_FUNCTION, WASM_TOO_LARGE; it names the invalid part */
export async function readDeployForm(request: IncomingMessage): Promise<DeployForm> {
  const form: DeployForm = {}
  let error: RuntimeError | undefined
  const reject = (code: 'INVALID_FUNCTION' | 'WASM_TOO_LARGE', message: string) => {
    error ??= new RuntimeError(code, message)
  }
  const parser = openParser(request)
  const ended = Promise.withResolvers<undefined>()
  const malformed = (cause?: unknown) =>
    ended.reject(new RuntimeError('INVALID_FUNCTION', 'The multipart form is malformed or ends too early.', { cause }))
  parser.on('field', (name, value, _nameCut, isCut) => {
    // A module without a file name arrives as a text, which changes its bytes.
    if (name === 'wasm') reject('INVALID_FUNCTION', 'Part "wasm" must be a file. Send it with a filename.')
    else if (!isTextPart(name))
      reject('INVALID_FUNCTION', `Unknown part "${name.slice(0, 100)}". Allowed: ${texts.join(', ')}, wasm.`)
    else if (form[name] !== undefined) reject('INVALID_FUNCTION', `Part "${name}" is repeated.`)
    else if (isCut) reject('INVALID_FUNCTION', `Part "${name}" has more than ${maxTextBytes} bytes.`)
    else form[name] = value
  })
  parser.on('file', (name, file) => {
    const chunks: Buffer[] = []
    // A form that breaks off within a file also emits an error here.
    file.on('error', malformed)
    file.on('data', (chunk: Buffer) => chunks.push(chunk))
    file.on('limit', () => reject('WASM_TOO_LARGE', `Part "wasm" has more than ${maxModuleBytes} bytes.`))
    file.on('end', () => {
      const bytes = Buffer.concat(chunks)
      if (name === 'wasm' && form.wasm === undefined) form.wasm = bytes
      else if (isTextPart(name) && form[name] === undefined && bytes.length <= maxTextBytes)
        form[name] = bytes.toString('utf8')
      else reject('INVALID_FUNCTION', `Part "${name.slice(0, 100)}" is unknown, too long or repeated.`)
    })
  })
  parser.on('fieldsLimit', () => reject('INVALID_FUNCTION', 'The form has too many parts.'))
  parser.on('filesLimit', () => reject('INVALID_FUNCTION', 'The form has too many files.'))
  parser.on('finish', () => ended.resolve(undefined))
  parser.on('error', malformed)
  request.on('error', malformed)
  request.on('aborted', () => malformed())
  request.pipe(parser)
  await ended.promise
  if (error !== undefined) throw error
  return form
}

function openParser(request: IncomingMessage): InstanceType<typeof Busboy> {
  const contentType = request.headers['content-type'] ?? ''
  if (!/^multipart\/form-data\b/i.test(contentType))
    throw new RuntimeError('INVALID_FUNCTION', 'The body must be multipart/form-data with a part "wasm".')
  try {
    return new Busboy({
      headers: { ...request.headers, 'content-type': contentType },
      limits: { fields: 16, files: 4, fieldSize: maxTextBytes, fileSize: maxModuleBytes, parts: 20 },
    })
  } catch (cause) {
    throw new RuntimeError('INVALID_FUNCTION', 'The multipart form has no boundary.', { cause })
  }
}

function isTextPart(name: string): name is TextPart {
  return texts.some((part) => part === name)
}
