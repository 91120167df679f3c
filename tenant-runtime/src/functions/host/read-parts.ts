// Decodes the text parameters of host calls.
import { CallError } from './call-error.ts'

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** Decodes UTF-8. @throws CallError INVALID_TEXT */
export function textOf(bytes: Buffer | undefined): string {
  try {
    return utf8.decode(bytes ?? Buffer.alloc(0))
  } catch {
    throw new CallError('INVALID_TEXT', 'A text parameter is not valid UTF-8.')
  }
}
