// The one place where a URL's text becomes an object's path. Decoded once; kept byte for byte. Pure.
import { RuntimeError } from '../errors.ts'

/** Bytes of UTF-8: what the table takes. */
export const maxPathLength = 1_024

/** With any beginning of a path before it, greater than every path that begins so. */
export const behindAll = '\u{10FFFF}'.repeat(maxPathLength / 4 + 1)

/** The raw rest of the URL's path behind `prefix`, which has `depth` segments: `["bucket", "a/b%20c"]`. */
export function rawRest(url: string, prefix: string): string {
  const end = url.search(/[?#]/)
  return (end < 0 ? url : url.slice(0, end)).slice(prefix.length)
}

/** `bucket/path…`, still encoded, to its two parts. */
export function splitTarget(raw: string): { bucket: string; path: string } {
  const slash = raw.indexOf('/')
  if (slash <= 0) throw new RuntimeError('INVALID_PATH', 'the URL must name a bucket and a path')
  return { bucket: decodeOnce(raw.slice(0, slash)), path: checkPath(decodeOnce(raw.slice(slash + 1))) }
}

function decodeOnce(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch (cause) {
    throw new RuntimeError('INVALID_PATH', 'the URL holds a percent sign that encodes nothing', { cause })
  }
}

/** @throws RuntimeError INVALID_PATH that says why */
export function checkPath(path: string): string {
  const error =
    path === ''
      ? 'is empty'
      : Buffer.byteLength(path) > maxPathLength
        ? `is longer than ${maxPathLength} bytes`
        : !path.isWellFormed()
          ? 'holds half of a character'
          : /[\x00-\x1f\x7f-\x9f]/.test(path)
            ? 'holds a control character'
            : path.includes('\\')
              ? 'holds a backslash'
              : path.split('/').some((segment) => segment === '.' || segment === '..')
                ? 'holds a segment "." or ".."'
                : path.split('/').some((segment) => segment === '')
                  ? 'holds an empty segment'
                  : undefined
  if (error !== undefined) throw new RuntimeError('INVALID_PATH', `the object's path ${error}`)
  return path
}

/** For a path that is to be made. @throws RuntimeError INVALID_PATH that says why */
export function checkNewPath(path: string, maxBytes: number): string {
  if (Buffer.byteLength(checkPath(path)) > maxBytes)
    throw new RuntimeError('INVALID_PATH', `the object's path is longer than ${maxBytes} bytes`)
  return path
}

/** A path as a URL needs it. */
export function encodePath(path: string): string {
  return path.split('/').map(encodeURIComponent).join('/')
}
