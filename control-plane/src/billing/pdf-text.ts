// Draws text on a PDF page in any script that the fonts have: breaks lines, orders runs and aligns them.
import type { Font } from 'fontkit'
import { graphemes, lineBreaksOf } from './line-breaks.ts'
import { fontOfDocument, type FontName, type PdfFonts } from './pdf-fonts.ts'
import { isRightToLeft, RunText, type TextRun } from './text-runs.ts'

export type PdfDocument = PDFKit.PDFDocument

export interface TextStyle {
  size: number
  bold?: boolean
  color?: string
  align?: 'left' | 'right'
}

/** A line's range of UTF-16 code units in the text, without trailing spaces. */
interface Line {
  start: number
  end: number
}

type Fits = (start: number, end: number) => boolean

/** Draws and measures paragraphs with the same layout. */
export class PdfText {
  readonly #document: PdfDocument
  readonly #fonts: PdfFonts
  readonly #own: ReadonlyMap<FontName, Font>

  constructor(document: PdfDocument, fonts: PdfFonts) {
    this.#document = document
    this.#fonts = fonts
    this.#own = new Map([...fonts].map(([name, font]) => [name, fontOfDocument(font)]))
    // PDFKit embeds a font only when a text uses it.
    for (const [name, font] of this.#own) document.registerFont(name, font)
  }

  /** Returns the height of the text, in points. */
  height(text: string, width: number, style: TextStyle): number {
    return this.#lines(text, this.#runText(text, style), width, style).length * lineHeight(style)
  }

  /**
   * Draws the text.
   * @returns its height, in points
   */
  draw(text: string, x: number, y: number, width: number, style: TextStyle): number {
    const runText = this.#runText(text, style)
    const lines = this.#lines(text, runText, width, style)
    for (const [nth, line] of lines.entries()) {
      const left = style.align === 'right' ? x + width - this.#width(runText.runs(line.start, line.end), style) : x
      this.#drawLine(runText, line, left, y + nth * lineHeight(style) + style.size, style)
    }
    return lines.length * lineHeight(style)
  }

  /** Draws a line in reading order, each run at its own position. */
  #drawLine(runText: RunText, { start, end }: Line, left: number, y: number, style: TextStyle): void {
    const runs = runText.runs(start, end)
    const lefts = new Map<number, number>()
    let at = left
    for (const run of runText.printed(runs, start, end)) {
      lefts.set(run.start, at)
      at += this.#width([run], style)
    }
    for (const run of runs) if (run.shown !== '') this.#drawRun(run, lefts.get(run.start) ?? left, y, style)
  }

  #drawRun(run: TextRun, x: number, y: number, style: TextStyle): void {
    const { text, marks } = this.#readBack(run)
    const isMarked = this.#mark(run, text === run.text && !(marks && !isRightToLeft(run)))
    this.#document
      .font(run.font)
      .fontSize(style.size)
      .fillColor(style.color ?? '#1a1a1a')
      .text(run.shown, x, y, { lineBreak: false, baseline: 'alphabetic', ...direction(run) })
    if (isMarked) this.#document.endMarkedContent()
  }

  /**
   * Opens a mark with the run's text for readers of the file that would not find it by the glyphs.
   * @returns whether a mark is open
   */
  #mark(run: TextRun, isReadBack: boolean): boolean {
    if (!isReadBack) this.#document.markContent('Span', { actual: run.text })
    else if (isRightToLeft(run)) this.#document.markContent('ReversedChars')
    return !isReadBack || isRightToLeft(run)
  }

  /** Returns the text that the glyphs of a run represent, and whether any glyph is moved relative to another. */
  #readBack(part: TextRun): { text: string; marks: boolean } {
    const { shown, font } = part
    const isReversed = isRightToLeft(part)
    // PDFKit shapes text that runs from left to right word by word.
    const words = isReversed ? [shown] : (shown.match(/[^ \t]*[ \t]|[^ \t]+/g) ?? [])
    let text = ''
    let marks = false
    for (const word of words) {
      const run = this.#own.get(font)?.layout(word, isReversed ? ['rtla'] : [])
      const glyphs = isReversed ? run?.glyphs.toReversed() : run?.glyphs
      text += (glyphs ?? []).map(({ codePoints }) => String.fromCodePoint(...codePoints)).join('')
      marks ||= run?.positions.some(({ xOffset, yOffset }) => xOffset !== 0 || yOffset !== 0) === true
    }
    return { text, marks }
  }

  #width(runs: readonly TextRun[], { size }: TextStyle): number {
    return runs.reduce(
      (sum, run) => sum + this.#document.font(run.font).fontSize(size).widthOfString(run.shown, direction(run)),
      0,
    )
  }

  /**
   * Cuts a word that is wider than a line.
   * @returns the start of its last line
   */
  #cut(text: string, from: number, to: number, fits: Fits, add: (start: number, end: number) => void): number {
    let start = from
    for (const { index, segment } of graphemes.segment(text.slice(from, to))) {
      const at = from + index
      if (at > start && !fits(start, at + segment.length)) {
        add(start, at)
        start = at
      }
    }
    return start
  }

  #runText(text: string, { bold }: TextStyle): RunText {
    return new RunText(text, bold === true, this.#fonts)
  }

  #lines(text: string, runText: RunText, width: number, style: TextStyle): Line[] {
    const lines: Line[] = []
    const line = (start: number, end: number): Line => ({ start, end: start + text.slice(start, end).trimEnd().length })
    const fits = (start: number, end: number) => {
      const trimmed = line(start, end)
      return this.#width(runText.runs(trimmed.start, trimmed.end), style) <= width
    }
    let start = 0
    let end = 0
    for (const { position, isRequired } of lineBreaksOf(text)) {
      if (!fits(start, position)) {
        if (end > start) lines.push(line(start, end))
        start = this.#cut(text, end, position, fits, (from, to) => lines.push(line(from, to)))
      }
      end = position
      if (isRequired) {
        lines.push(line(start, end))
        start = end
      }
    }
    return [...lines, line(start, end)]
  }
}

/**
 * Returns the features that make a run's text run from right to left: PDFKit passes features to the font, but no
 * direction.
 */
function direction(run: TextRun): { features: PDFKit.Mixins.OpenTypeFeatures[] } | undefined {
  return isRightToLeft(run) ? { features: ['rtla'] } : undefined
}

export function lineHeight({ size }: TextStyle): number {
  return Math.round(size * 1.35 * 100) / 100
}
