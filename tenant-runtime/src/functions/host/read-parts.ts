// What a guest has given, as texts.
import { CallError } from './call-error.ts'

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** @throws CallError INVALID_TEXT */
export function textOf(bytes: Buffer | undefined): string {
  try {
    return utf8.decode(bytes ?? Buffer.alloc(0))
  } catch {
    throw new CallError('INVALID_TEXT', 'a text is not UTF-8')
  }
}
