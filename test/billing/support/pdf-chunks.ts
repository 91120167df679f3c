// Extracts a PDF's text: every chunk with its page and position, from the Unicode tables in the file.
import { inflateSync } from 'node:zlib'

export interface PdfChunk {
  page: number
  /** Distance from the left edge in points; `y` is the distance from the bottom. */
  x: number
  y: number
  text: string
  /** Number of glyphs that print an empty box. */
  missing: number
}

/** Extracts the chunks of a PDF in our format: no object streams, one content stream a page, texts as hexadecimal glyphs. */
export function pdfChunks(file: Buffer): PdfChunk[] {
  const objects = objectsOf(file)
  const fonts = new Map<string, Map<number, string>>()
  for (const { head } of objects.values()) {
    for (const [, name = '', id = ''] of head.matchAll(/\/(F\d+) (\d+) 0 R/g)) {
      const unicode = /\/ToUnicode (\d+) 0 R/.exec(objects.get(id)?.head ?? '')?.[1]
      fonts.set(name, glyphTable(objects.get(unicode ?? '')?.body.toString('latin1') ?? ''))
    }
  }
  const pages = [...objects.values()].filter(({ head }) => /\/Type \/Page\b(?!s)/.test(head))
  return pages.flatMap(({ head }, page) => {
    const content = objects.get(/\/Contents (\d+) 0 R/.exec(head)?.[1] ?? '')?.body.toString('latin1') ?? ''
    return chunksOf(content, fonts).map((chunk) => ({ page, ...chunk }))
  })
}

/** Extracts the lines of a PDF from top to bottom, each with its chunks from left to right. */
export function pdfRows(file: Buffer): string[][] {
  const rows = new Map<string, PdfChunk[]>()
  for (const chunk of pdfChunks(file)) {
    const location = `${chunk.page} ${Math.round(chunk.y * 10)}`
    rows.set(location, [...(rows.get(location) ?? []), chunk])
  }
  return [...rows.values()]
    .sort(([a], [b]) => (a?.page ?? 0) - (b?.page ?? 0) || (b?.y ?? 0) - (a?.y ?? 0))
    .map((row) => row.sort((a, b) => a.x - b.x).map(({ text }) => text))
}

function objectsOf(file: Buffer): Map<string, { head: string; body: Buffer }> {
  const text = file.toString('latin1')
  const objects = new Map<string, { head: string; body: Buffer }>()
  for (const match of text.matchAll(/(?:^|\n)(\d+) 0 obj\n/g)) {
    const from = match.index + match[0].length
    const head = text.slice(from, text.indexOf('endobj', from)).split('stream\n', 1)[0] ?? ''
    const length = Number(/\/Length (\d+)/.exec(head)?.[1] ?? 0)
    const start = from + head.length + 'stream\n'.length
    const bytes = file.subarray(start, start + length)
    objects.set(match[1] ?? '', { head, body: head.includes('/FlateDecode') ? inflateSync(bytes) : bytes })
  }
  return objects
}

/** Maps a glyph ID to its text. */
function glyphTable(map: string): Map<number, string> {
  const table = new Map<number, string>()
  for (const [, first = '', , list = ''] of map.matchAll(/<([0-9a-f]+)> <([0-9a-f]+)> \[([^\]]*)\]/gi)) {
    for (const [nth, [, hex = '']] of [...list.matchAll(/<([0-9a-f ]*)>/gi)].entries()) {
      table.set(
        Number.parseInt(first, 16) + nth,
        Buffer.from(hex.replaceAll(' ', ''), 'hex').swap16().toString('utf16le'),
      )
    }
  }
  return table
}

/** Returns a chunk for each run of glyphs, and one for all runs between two marks that give their text. */
function chunksOf(content: string, fonts: ReadonlyMap<string, ReadonlyMap<number, string>>): Omit<PdfChunk, 'page'>[] {
  const chunks: Omit<PdfChunk, 'page'>[] = []
  let [font, x, y] = ['', 0, 0]
  let mark: Mark | undefined
  for (const line of content.split('\n')) {
    const location = /^1 0 0 1 (\S+) (\S+) Tm$/.exec(line)
    if (location !== null) [x, y] = [Number(location[1]), Number(location[2])]
    font = /^\/(F\d+) \S+ Tf$/.exec(line)?.[1] ?? font
    if (line === '/Span <<' || line === '/ReversedChars BMC')
      mark = { isReversed: line === '/ReversedChars BMC', actual: undefined, chunks: [] }
    const actual = /^\/ActualText \((.*)\)$/s.exec(line)?.[1]
    if (mark !== undefined && actual !== undefined) mark.actual = literal(actual)
    if (line === 'EMC' && mark !== undefined) {
      chunks.push(...markedChunk(mark))
      mark = undefined
    }
    if (!line.endsWith('TJ')) continue
    const glyphs =
      [...line.matchAll(/<([0-9a-f]+)>/gi)]
        .map(([, hex]) => hex ?? '')
        .join('')
        .match(/.{4}/g) ?? []
    const texts = glyphs.map((glyph) => fonts.get(font)?.get(Number.parseInt(glyph, 16)) ?? '\ufffd')
    ;(mark?.chunks ?? chunks).push({
      x,
      y,
      text: (mark?.isReversed === true ? texts.reverse() : texts).join(''),
      missing: glyphs.filter((glyph) => glyph === '0000').length,
    })
  }
  return chunks
}

interface Mark {
  isReversed: boolean
  actual: string | undefined
  chunks: Omit<PdfChunk, 'page'>[]
}

function markedChunk({ isReversed, actual, chunks }: Mark): Omit<PdfChunk, 'page'>[] {
  const [first] = chunks
  if (first === undefined) return []
  const texts = chunks.map(({ text }) => text)
  return [
    {
      ...first,
      text: actual ?? (isReversed ? texts.reverse() : texts).join(''),
      missing: chunks.reduce((sum, { missing }) => sum + missing, 0),
    },
  ]
}

/** Decodes a string in parentheses: UTF-16 after a byte order mark, else ASCII. */
function literal(escaped: string): string {
  const controls: Record<string, string> = { n: '\n', r: '\r', t: '\t', b: '\b', f: '\f' }
  const bytes = Buffer.from(
    escaped.replace(/\\(.)/gs, (_, character: string) => controls[character] ?? character),
    'latin1',
  )
  return bytes[0] === 0xfe && bytes[1] === 0xff
    ? bytes.subarray(2).swap16().toString('utf16le')
    : bytes.toString('latin1')
}
