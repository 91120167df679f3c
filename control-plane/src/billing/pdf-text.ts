// Text on a PDF's page in any of the scripts that our fonts have: cut into runs of one font, broken into lines, aligned.
import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'

export type PdfDocument = PDFKit.PDFDocument

export interface TextStyle {
  size: number
  bold?: boolean
  color?: string
  align?: 'left' | 'right'
}

const eastAsian = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Bopomofo}\u3000-\u303f\uff00-\uffef]/u
const fontNames = ['sans', 'sans-bold', 'han', 'han-bold'] as const
type FontName = (typeof fontNames)[number]

/** The files of the fonts that invoices as PDF are set in; they are read once, for the first of them. */
export type PdfFonts = ReadonlyMap<FontName, Buffer>

/** Reads the fonts' files: DejaVu Sans (Latin, Greek, Cyrillic, Arabic, Hebrew and others) and Noto Sans for Chinese and Japanese. */
export async function loadPdfFonts(): Promise<PdfFonts> {
  const { resolve } = createRequire(import.meta.url)
  const dejavu = join(dirname(resolve('dejavu-fonts-ttf/package.json')), 'ttf')
  const noto = join(dirname(dirname(resolve('@embedpdf/fonts-sc'))), 'fonts')
  const files: Record<FontName, string> = {
    sans: join(dejavu, 'DejaVuSans.ttf'),
    'sans-bold': join(dejavu, 'DejaVuSans-Bold.ttf'),
    han: join(noto, 'NotoSansHans-Regular.otf'),
    'han-bold': join(noto, 'NotoSansHans-Bold.otf'),
  }
  return new Map(
    await Promise.all(fontNames.map(async (name): Promise<[FontName, Buffer]> => [name, await readFile(files[name])])),
  )
}

interface Run {
  text: string
  font: FontName
}

/** Writes paragraphs; what it measures and what it draws are the same. */
export class PdfText {
  readonly #document: PdfDocument

  constructor(document: PdfDocument, fonts: PdfFonts) {
    this.#document = document
    // A font is only read, and put into the file, once a text needs it.
    for (const [name, file] of fonts) document.registerFont(name, file)
  }

  /** Points that the text takes from top to bottom. */
  height(text: string, width: number, style: TextStyle): number {
    return this.#lines(text, width, style).length * lineHeight(style)
  }

  /** @returns the height */
  draw(text: string, x: number, y: number, width: number, style: TextStyle): number {
    const lines = this.#lines(text, width, style)
    for (const [nth, line] of lines.entries()) this.#drawLine(line, x, y + nth * lineHeight(style), width, style)
    return lines.length * lineHeight(style)
  }

  #drawLine(line: string, x: number, y: number, width: number, style: TextStyle): void {
    let at = style.align === 'right' ? x + width - this.#width(line, style) : x
    for (const run of runsOf(line, style)) {
      this.#document
        .font(run.font)
        .fontSize(style.size)
        .fillColor(style.color ?? '#1a1a1a')
      this.#document.text(run.text, at, y + style.size, { lineBreak: false, baseline: 'alphabetic' })
      at += this.#document.widthOfString(run.text)
    }
  }

  #width(text: string, style: TextStyle): number {
    return runsOf(text, style).reduce(
      (sum, run) => sum + this.#document.font(run.font).fontSize(style.size).widthOfString(run.text),
      0,
    )
  }

  #lines(text: string, width: number, style: TextStyle): string[] {
    const lines: string[] = []
    let line = ''
    for (const piece of breakable(text)) {
      if (this.#width((line + piece).trimEnd(), style) <= width) line += piece
      else {
        if (line !== '') lines.push(line.trimEnd())
        line = this.#cutOff(piece, width, style, lines)
      }
    }
    return [...lines, line.trimEnd()]
  }

  /** A word that is wider than a line is cut where it ends. @returns the rest, which begins the next line */
  #cutOff(word: string, width: number, style: TextStyle, lines: string[]): string {
    let rest = ''
    for (const { segment } of graphemes.segment(word)) {
      if (rest !== '' && this.#width((rest + segment).trimEnd(), style) > width) {
        lines.push(rest)
        rest = ''
      }
      rest += segment
    }
    return rest
  }
}

const graphemes = new Intl.Segmenter('en', { granularity: 'grapheme' })

export function lineHeight({ size }: TextStyle): number {
  return Math.round(size * 1.35 * 100) / 100
}

/** Pieces between which a line may end: words with the spaces after them, and single East Asian characters. */
function breakable(text: string): string[] {
  return (text.match(/\s*\S+\s*/g) ?? []).flatMap((word) =>
    eastAsian.test(word) ? [...graphemes.segment(word)].map(({ segment }) => segment) : [word],
  )
}

/** In the order in which they stand on the page, from left to right. */
function runsOf(text: string, { bold }: TextStyle): Run[] {
  const runs: Run[] = []
  const add = (part: string, font: FontName, apart: boolean) => {
    const last = runs.at(-1)
    if (last?.font === font && !apart) last.text += part
    else runs.push({ text: part, font })
  }
  const weight = bold === true ? '-bold' : ''
  for (const word of visualOrder(text)) {
    if (!eastAsian.test(word))
      add(word, `sans${weight}`, rightToLeft.test(word) || rightToLeft.test(runs.at(-1)?.text ?? ''))
    else
      for (const { segment } of graphemes.segment(word))
        add(segment, `${eastAsian.test(segment) ? 'han' : 'sans'}${weight}`, false)
  }
  return runs
}

const rightToLeft = /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufeff]/
const firstStrong = /\p{L}/u

/**
 * A line's words and the spaces between them as they stand on the page. The letters of a word are put in order by the
 * font's shaping; this puts the words of Hebrew, Arabic and the like in order, and leaves the others' among themselves.
 */
function visualOrder(line: string): string[] {
  const words = line.match(/\s+|\S+/g) ?? []
  if (!rightToLeft.test(line)) return words
  const backwards = rightToLeft.test(firstStrong.exec(line)?.[0] ?? '')
  const turned = backwards ? words.toReversed() : words
  // Of the two kinds, the one that now stands the wrong way round is turned back, stretch by stretch.
  const wrong = (word: string) => rightToLeft.test(word) !== backwards && word.trim() !== ''
  const ordered: string[] = []
  for (let at = 0; at < turned.length;) {
    let end = at
    while (end < turned.length && wrong(turned[end] ?? ''))
      end += turned[end + 1]?.trim() === '' && wrong(turned[end + 2] ?? '') ? 2 : 1
    ordered.push(...(end > at ? turned.slice(at, end).reverse() : turned.slice(at, at + 1)))
    at = Math.max(end, at + 1)
  }
  return ordered
}
