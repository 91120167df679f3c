// Converts URLs to objects' paths. A path is decoded once and then stored byte for byte. Pure.
import { RuntimeError } from '../errors.ts'

/** Longest path that the table takes, in bytes of UTF-8. */
export const maxPathLength = 1_024

/** A suffix that sorts any prefix of a path after every path with that prefix. */
export const afterAllPaths = '\u{10FFFF}'.repeat(maxPathLength / 4 + 1)

/** Returns what follows `prefix` in the URL's path, still encoded: `bucket/a/b%20c`. */
export function rawRest(url: string, prefix: string): string {
  const end = url.search(/[?#]/)
  return (end < 0 ? url : url.slice(0, end)).slice(prefix.length)
}

/** Splits and decodes an encoded `bucket/path…`. @throws RuntimeError INVALID_PATH */
export function splitTarget(raw: string): { bucket: string; path: string } {
  const slash = raw.indexOf('/')
  if (slash <= 0) throw new RuntimeError('INVALID_PATH', 'The URL must name a bucket and a path.')
  return { bucket: decodeOnce(raw.slice(0, slash)), path: checkPath(decodeOnce(raw.slice(slash + 1))) }
}

function decodeOnce(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch (cause) {
    throw new RuntimeError('INVALID_PATH', 'The URL contains a percent sign that is not part of an encoding.', {
      cause,
    })
  }
}

/** Validates a path. @throws RuntimeError INVALID_PATH with the reason */
export function checkPath(path: string): string {
  const error =
    path === ''
      ? 'is empty'
      : Buffer.byteLength(path) > maxPathLength
        ? `is longer than ${maxPathLength} bytes`
        : !path.isWellFormed()
          ? 'contains an unpaired surrogate'
          : /[\x00-\x1f\x7f-\x9f]/.test(path)
            ? 'contains a control character'
            : path.includes('\\')
              ? 'contains a backslash'
              : path.split('/').some((segment) => segment === '.' || segment === '..')
                ? 'contains a segment "." or ".."'
                : path.split('/').some((segment) => segment === '')
                  ? 'contains an empty segment'
                  : undefined
  if (error !== undefined) throw new RuntimeError('INVALID_PATH', `The object's path ${error}.`)
  return path
}

/** Validates the path of a new object. @throws RuntimeError INVALID_PATH with the reason */
export function checkNewPath(path: string, maxBytes: number): string {
  if (Buffer.byteLength(checkPath(path)) > maxBytes)
    throw new RuntimeError('INVALID_PATH', `The object's path is longer than ${maxBytes} bytes.`)
  return path
}

/** Encodes a path for a URL. */
export function encodePath(path: string): string {
  return path.split('/').map(encodeURIComponent).join('/')
}
