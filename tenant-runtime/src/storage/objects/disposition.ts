// The Content-Disposition of a download: whether a browser shows or saves the file, and its name (RFC 6266). Pure.

/** Types in which browsers run no scripts. All others are saved instead of shown, among them types that end with `+xml`. */
const shownTypes = [
  /image\/(?:png|jpeg|gif|webp|avif|bmp|x-icon|vnd\.microsoft\.icon)/,
  /audio\/[\w.-]+/,
  /video\/[\w.-]+/,
  /text\/plain/,
  /application\/json/,
  /font\/[\w.-]+/,
]
const shown = new RegExp(`^(?:${shownTypes.map(({ source }) => source).join('|')})(?:\\s*;|$)`, 'i')

/**
 * Returns the header's value; undefined if the file is shown.
 * @param download the query parameter of that name: a file name; empty for the object's own name
 */
export function contentDisposition(
  contentType: string,
  path: string,
  download: string | undefined,
): string | undefined {
  if (download === undefined) return shown.test(contentType) ? undefined : attachment(lastSegment(path))
  return attachment(download === '' ? lastSegment(path) : download)
}

function attachment(name: string): string {
  const plain = name.replaceAll(/[^\x20-\x7e]/g, '_').replaceAll(/["\\%]/g, '_')
  const encoded = encodeURIComponent(name.toWellFormed()).replaceAll(
    /['()*]/g,
    (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
  )
  return `attachment; filename="${plain}"; filename*=UTF-8''${encoded}`
}

function lastSegment(path: string): string {
  return path.slice(path.lastIndexOf('/') + 1)
}
