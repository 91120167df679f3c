// Divides a line of text into runs that have one font and one direction, and are each drawn at once.
import bidiFactory from 'bidi-js'
import { graphemes } from './line-breaks.ts'
import { fontOrder, hasCharacter, type FontName, type PdfFonts } from './pdf-fonts.ts'

export interface TextRun {
  /** The index in the whole text of the run's first UTF-16 code unit. */
  start: number
  text: string
  /** The characters that the font prints for the text: without invisible ones, and with `\ufffd` for unknown ones. */
  shown: string
  font: FontName
  /** Unicode's embedding level. Runs with an odd level go from right to left. */
  level: number
  /** Whether the run is not joined with its neighbours. */
  isApart: boolean
}

const bidi = bidiFactory()
const replacement = '\ufffd'
const ignorable = /^\p{Default_Ignorable_Code_Point}$/u
const space = /^\s+$/u
const control = /\p{Cc}/u

/** A text that is divided into lines of runs. */
export class RunText {
  readonly #text: string
  readonly #levels: ReturnType<typeof bidi.getEmbeddingLevels>
  readonly #parts: readonly TextRun[]

  constructor(text: string, isBold: boolean, fonts: PdfFonts) {
    this.#text = text
    this.#levels = bidi.getEmbeddingLevels(text)
    const parts: TextRun[] = []
    for (const { segment, index } of graphemes.segment(text)) {
      const level = this.#levels.levels[index] ?? 0
      for (const part of partsOf(segment, isBold, fonts, parts.at(-1))) {
        const placed = { ...part, start: index + part.start, level }
        parts.push(isRightToLeft(placed) ? isolated(placed) : placed)
      }
    }
    this.#parts = parts
  }

  /** Returns the runs of a line in reading order. */
  runs(start: number, end: number): TextRun[] {
    const runs: TextRun[] = []
    for (const part of this.#parts) {
      if (part.start < start || part.start >= end) continue
      const last = runs.at(-1)
      if (last === undefined || !belongsTo(part, last)) runs.push({ ...part })
      else {
        // Invisible characters at the beginning take the font of what follows.
        if (last.shown === '') Object.assign(last, { font: part.font, isApart: part.isApart })
        last.text += part.text
        last.shown += part.shown
      }
    }
    return runs
  }

  /** Returns a line's runs in the order in which they are printed, from left to right. */
  printed(runs: readonly TextRun[], start: number, end: number): TextRun[] {
    const positions = new Map(
      bidi.getReorderedIndices(this.#text, this.#levels, start, end - 1).map((index, location) => [index, location]),
    )
    const location = (run: TextRun) => positions.get(run.start) ?? 0
    return runs.toSorted((a, b) => location(a) - location(b))
  }
}

function belongsTo(part: TextRun, run: TextRun): boolean {
  if (part.level !== run.level) return false
  if (part.shown === '' || run.shown === '') return true
  return part.font === run.font && !part.isApart && !run.isApart
}

export function isRightToLeft({ level }: TextRun): boolean {
  return level % 2 === 1
}

/** Separates words, spaces and brackets that go from right to left: the glyphs of a run are reversed as a whole. */
function isolated(part: TextRun): TextRun {
  const mirrored = bidi.getMirroredCharacter(part.text)
  return {
    ...part,
    shown: mirrored ?? part.shown,
    isApart: mirrored !== null || space.test(part.text) || part.shown === replacement,
  }
}

/** Returns one part for a grapheme, or more where no font has all of its characters. */
function partsOf(grapheme: string, isBold: boolean, fonts: PdfFonts, before: TextRun | undefined): TextRun[] {
  const has = (font: FontName) => (character: string) => hasCharacter(fonts, font, character)
  const part = (start: number, text: string, shown: string, font: FontName): TextRun => ({
    start,
    text,
    shown,
    font,
    level: 0,
    isApart: false,
  })
  const order = fontOrder(grapheme, isBold)
  if (space.test(grapheme)) {
    // A space stays in the font of the word before it. Line feeds and tabs are printed as spaces.
    const font = [...(before === undefined ? [] : [before.font]), ...order].find((name) => has(name)(grapheme))
    const isPlain = font === undefined || control.test(grapheme)
    return [part(0, grapheme, isPlain ? ' ' : grapheme, font ?? before?.font ?? 'sans')]
  }
  const characters = Array.from(grapheme)
  const visible = characters.filter((character) => !ignorable.test(character))
  const whole = order.find((font) => visible.every(has(font)))
  if (whole !== undefined) return [part(0, grapheme, openSaraAm(characters.filter(has(whole)).join('')), whole)]
  const first = order.find((font) => has(font)(characters[0] ?? ''))
  // A grapheme that no font has, such as an emoji, is replaced as a whole, however many characters it has.
  if (first === undefined) return [part(0, grapheme, replacement, isBold ? 'sans-bold' : 'sans')]
  const parts: TextRun[] = []
  let start = 0
  for (const character of characters) {
    const font = order.find((name) => has(name)(character))
    if (font !== undefined) parts.push(part(start, character, character, font))
    else parts.push(part(start, character, ignorable.test(character) ? '' : replacement, isBold ? 'sans-bold' : 'sans'))
    start += character.length
  }
  return parts
}

/**
 * Decomposes Thai's letter SARA AM into a circle above the letter before it, and SARA AA. A tone mark is printed above
 * the circle, although it is written before it. Unlike other shapers, fontkit does not reorder the two.
 */
function openSaraAm(grapheme: string): string {
  return grapheme.replace(/([\u0e31\u0e34-\u0e37\u0e47-\u0e4e]*)\u0e33/g, '\u0e4d$1\u0e32')
}
