// The fonts of PDFs: opens them once for all documents, and selects the font that prints a character.
import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { create, type Font, type Glyph, type GlyphRun } from 'fontkit'

const families = ['sans', 'han', 'korean', 'thai', 'devanagari'] as const
type Family = (typeof families)[number]
export type FontName = Family | `${Family}-bold`

/** The opened fonts of PDFs, by name. */
export type PdfFonts = ReadonlyMap<FontName, Font>

/**
 * Opens the font files: DejaVu Sans (Latin, Greek, Cyrillic, Arabic, Hebrew and others) and Noto Sans for Chinese and
 * Japanese, Korean, Thai, and Devanagari.
 */
export async function loadPdfFonts(): Promise<PdfFonts> {
  const { resolve } = createRequire(import.meta.url)
  const dejavu = join(dirname(resolve('dejavu-fonts-ttf/package.json')), 'ttf')
  const han = join(dirname(dirname(resolve('@embedpdf/fonts-sc'))), 'fonts')
  const korean = join(dirname(dirname(resolve('@embedpdf/fonts-kr'))), 'fonts')
  const thai = dirname(resolve('@expo-google-fonts/noto-sans-thai/package.json'))
  const devanagari = dirname(resolve('@expo-google-fonts/noto-sans-devanagari/package.json'))
  const files: [FontName, string][] = [
    ['sans', join(dejavu, 'DejaVuSans.ttf')],
    ['sans-bold', join(dejavu, 'DejaVuSans-Bold.ttf')],
    ['han', join(han, 'NotoSansHans-Regular.otf')],
    ['han-bold', join(han, 'NotoSansHans-Bold.otf')],
    ['korean', join(korean, 'NotoSansKR-Regular.otf')],
    ['korean-bold', join(korean, 'NotoSansKR-Bold.otf')],
    ['thai', join(thai, '400Regular/NotoSansThai_400Regular.ttf')],
    ['thai-bold', join(thai, '700Bold/NotoSansThai_700Bold.ttf')],
    ['devanagari', join(devanagari, '400Regular/NotoSansDevanagari_400Regular.ttf')],
    ['devanagari-bold', join(devanagari, '700Bold/NotoSansDevanagari_700Bold.ttf')],
  ]
  return new Map(await Promise.all(files.map(async ([name, file]) => [name, await openFont(file)] as const)))
}

async function openFont(file: string): Promise<Font> {
  const font = create(await readFile(file))
  if (!('layout' in font)) throw new Error(`${file} is a font collection; a single font is required.`)
  return font
}

const eastAsian = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Bopomofo}\u3000-\u303f\uff00-\uffef]/u
const regular = fontOrders('')
const bold = fontOrders('-bold')

/** Returns the orders of fonts for a weight. Regular fonts follow the bold ones, which lack some characters. */
function fontOrders(weight: '' | '-bold'): { eastAsian: readonly FontName[]; others: readonly FontName[] } {
  const named = (order: readonly Family[]): FontName[] => [
    ...new Set([...order.map((family): FontName => `${family}${weight}`), ...order]),
  ]
  return {
    eastAsian: named(['han', 'korean', 'sans', 'thai', 'devanagari']),
    others: named(['sans', 'korean', 'han', 'thai', 'devanagari']),
  }
}

/** Returns the fonts to search for a character, in order. */
export function fontOrder(characters: string, isBold: boolean): readonly FontName[] {
  return (isBold ? bold : regular)[eastAsian.test(characters) ? 'eastAsian' : 'others']
}

export function hasCharacter(fonts: PdfFonts, name: FontName, character: string): boolean {
  return fonts.get(name)?.hasGlyphForCodePoint(character.codePointAt(0) ?? 0) === true
}

/**
 * Derives the font for one document, which shares the parsed file. The glyphs belong to the document, because a glyph
 * records the characters that it was first used for, and these become the document's table for extracting text.  The
 * feature `rtla` makes text run from right to left, because PDFKit passes features but no direction.
 */
export function fontOfDocument(font: Font): Font {
  const glyphs = new Map<number, Glyph>()
  const getGlyph = (id: number, codePoints: number[] = []): Glyph => {
    const known = glyphs.get(id)
    if (known !== undefined) return known
    const glyph: Glyph = derive(font.getGlyph(id, codePoints), { codePoints })
    glyphs.set(id, glyph)
    return glyph
  }
  const runs = new Map<string, GlyphRun>()
  const layout = (text: string, features: string[] = []): GlyphRun => {
    const direction = features.includes('rtla') ? 'rtl' : 'ltr'
    const known = runs.get(direction + text)
    const run = known ?? font.layout.call(own, text, features, undefined, undefined, direction)
    if (known === undefined) runs.set(direction + text, run)
    // PDFKit modifies the positions that it receives.
    return derive(run, { positions: run.positions.map((position) => ({ ...position })) })
  }
  const own: Font = derive(font, { getGlyph, layout })
  return own
}

/** Creates an object that inherits from another one and overrides some of its properties. */
function derive<T extends object>(from: T, own: Partial<T>): T {
  const derived: unknown = Object.create(from, Object.getOwnPropertyDescriptors(own))
  if (!isDerived(derived, from)) throw new Error('The object does not have the prototype that it was created with.')
  return derived
}

function isDerived<T extends object>(value: unknown, from: T): value is T {
  return typeof value === 'object' && value !== null && Object.getPrototypeOf(value) === from
}
