// Names in any script on an invoice's PDF: each character is printed at its position and can be extracted as text.
import naughty from 'big-list-of-naughty-strings' with { type: 'json' }
import fc from 'fast-check'
import PDFDocument from 'pdfkit'
import t, { type Test } from 'tap'
import { lineBreaksOf } from '#control-plane/billing/line-breaks.ts'
import { fontOfDocument, loadPdfFonts, type FontName } from '#control-plane/billing/pdf-fonts.ts'
import { PdfText, type TextStyle } from '#control-plane/billing/pdf-text.ts'
import { RunText } from '#control-plane/billing/text-runs.ts'
import { seed } from '#test/support/effort.ts'
import { pdfChunks, type PdfChunk } from './support/pdf-chunks.ts'

const fonts = await loadPdfFonts()
const style: TextStyle = { size: 10 }

async function pageOf(text: string, { width = 480, bold = false } = {}): Promise<{ file: Buffer; chunks: PdfChunk[] }> {
  const document = new PDFDocument({ margin: 0, size: 'A4', info: { CreationDate: new Date(0) } })
  const chunks: Buffer[] = []
  document.on('data', (chunk: Buffer) => chunks.push(chunk))
  const ended = new Promise<void>((resolve) => document.on('end', resolve))
  new PdfText(document, fonts).draw(text, 50, 50, width, { ...style, bold })
  document.end()
  await ended
  const file = Buffer.concat(chunks)
  return { file, chunks: pdfChunks(file) }
}

/** Text of the chunks in the order of the file, which is the reading order. */
const textOf = (chunks: readonly PdfChunk[]) => chunks.map(({ text }) => text).join('')

function isComplete(t: Test, chunks: readonly PdfChunk[], name: string): void {
  t.equal(
    chunks.reduce((sum, { missing }) => sum + missing, 0),
    0,
    `${name}: no empty box`,
  )
}

const names = {
  Korean: ['주식회사 한국전자', '주식회사 ABC 코리아 2026 (서울)', '한국어'.normalize('NFD'), '大韓民國 서울特別市'],
  Thai: ['บริษัท น้ำดื่ม จำกัด', 'ปู่ ที่นี่ กำลัง เก๋า ฐิ', 'บริษัท ABC (ประเทศไทย) จำกัด 2,500 ฿', 'กรุงเทพฯ ๑๒๓ ต่าง ๆ'],
  Hindi: ['क्षत्रिय', 'श्री कृष्ण ट्रेडिंग कंपनी प्रा. लि.', 'र्कि हिन्दी ज्ञान द्वारा।', 'नमस्ते (नई दिल्ली) ABC १२३ 456', 'क्\u200dष'],
  Arabic: ['شركة النور للتجارة', 'شركة 123 ABC (دبي) 45.5', 'مُحَمَّد لله لا', 'مؤسسة ۱۲۳ تهران', 'ABC شركة Ltd'],
  Hebrew: ['חברת ABC Ltd (ישראל) בע"מ 12-34', 'שָׁלוֹם 1,234.50 ₪', 'Tel תל אביב Aviv', '[א] {ב} <ג>'],
  Chinese: ['北京云端数据科技有限公司', '東京ABCビル１２３「さくら」', '上海 (中国) 2026'],
  Latin: ['Łódź Ærø Straße', 'e\u0301 q\u0323\u0303', 'a\u00a0b\u2003c', 'ﬁ file Å \u00ad-'],
}
for (const [script, texts] of Object.entries(names)) {
  t.test(`${script}: each character is printed and extracted in both weights`, async (t) => {
    for (const text of texts) {
      for (const bold of [false, true]) {
        const { chunks } = await pageOf(text, { bold })
        t.equal(textOf(chunks), text)
        isComplete(t, chunks, text)
        t.notOk(shownOf(text, bold).includes('\ufffd'), `${text}: no replacement character`)
      }
    }
  })
}

function shownOf(text: string, isBold = false): string {
  return new RunText(text, isBold, fonts)
    .runs(0, text.length)
    .map(({ shown }) => shown)
    .join('')
}

/** Returns the glyph IDs of a word in a font. */
function glyphsOf(name: FontName, text: string): number[] {
  const font = fonts.get(name)
  if (font === undefined) throw new Error(`no font ${name}`)
  return fontOfDocument(font)
    .layout(text)
    .glyphs.map(({ id }) => id)
}

t.test('Devanagari letters are joined into conjuncts, and vowels are in print order', (t) => {
  for (const font of ['devanagari', 'devanagari-bold'] as const) {
    const word = glyphsOf(font, 'क्षत्रिय')
    t.equal(word.length, 4, 'kṣa, i, tra, ya')
    t.notOk(word.includes(0))
    t.same(glyphsOf(font, 'क्ष'), word.slice(0, 1))
    t.same(glyphsOf(font, 'त्र'), word.slice(2, 3), 'the vowel i is before the conjunct that it follows')
    t.equal(glyphsOf(font, 'र्क').length, 2)
    t.same(glyphsOf(font, 'र्क')[0], glyphsOf(font, 'क')[0], 'a first r is a mark above the next letter')
  }
  t.end()
})

t.test('A tone mark is above the circle of Thai SARA AM', async (t) => {
  t.equal(shownOf('น้ำ'), 'น\u0e4d\u0e49\u0e32')
  t.equal(shownOf('กำ'), 'ก\u0e4d\u0e32')
  const { chunks } = await pageOf('น้ำ กำ')
  t.equal(textOf(chunks), 'น้ำ กำ')
})

t.test(
  'Hebrew and Arabic words and brackets run from right to left, numbers and Latin from left to right',
  async (t) => {
    const printed = async (text: string) =>
      (await pageOf(text)).chunks
        .toSorted((a, b) => a.x - b.x)
        .map((chunk) => chunk.text.trim())
        .filter((chunk) => chunk !== '')
    t.same(await printed('חברת ABC Ltd (ישראל) 12-34'), ['12-34', ')', 'ישראל', '(', 'ABC Ltd', 'חברת'])
    t.same(await printed('شركة 123 دبي'), ['دبي', '123', 'شركة'])
    t.same(await printed('Tel תל אביב 12 Aviv'), ['Tel', '12', 'אביב', 'תל', 'Aviv'])
    t.same(
      new RunText('א(ב', false, fonts).runs(0, 3).map(({ shown }) => shown),
      ['א', ')', 'ב'],
      'an opening bracket opens to the left',
    )
  },
)

t.test('A cluster without a glyph prints one replacement character and is still extracted', async (t) => {
  for (const [text, shown] of [
    ['🚀 Rocket', '\ufffd Rocket'],
    ['a 👨‍👩‍👧 b', 'a \ufffd b'],
    ['a\u{10fffd}b\u0378c', 'a\ufffdb\ufffdc'],
    ['ק🚀ש', 'ק\ufffdש'],
    ['பெ ABC', '\ufffd ABC'],
    ['\ud800x', '\ufffdx'],
    ['tab\there', 'tab here'],
    ['x\u200b\u2060y\ufeffz', undefined],
    ['\u3164abc', 'abc'],
  ] as const) {
    const { chunks } = await pageOf(text)
    t.equal(textOf(chunks), text)
    isComplete(t, chunks, text)
    if (shown !== undefined) t.equal(shownOf(text), shown)
  }
  t.same((await pageOf('\u3164')).chunks, [], 'invisible text alone prints nothing')
})

t.test('Lines of long texts break between words or characters, within the width', async (t) => {
  const width = 150
  for (const [text, words] of [
    ['บริษัทน้ำดื่มไทยจำกัด'.repeat(8), ['บริษัท', 'น้ำ', 'ดื่ม', 'ไทย', 'จำกัด']],
    ['北京云端数据科技有限公司，'.repeat(8), undefined],
    ['대한민국서울특별시강남구테헤란로'.repeat(5), undefined],
    ['क्षत्रिय'.repeat(20), undefined],
    ['x'.repeat(120), undefined],
  ] as const) {
    const { chunks } = await pageOf(text, { width })
    t.equal(textOf(chunks), text)
    isComplete(t, chunks, text.slice(0, 10))
    const lines = [...Map.groupBy(chunks, ({ y }) => Math.round(y)).values()]
    t.ok(lines.length > 2, `${lines.length} lines`)
    t.ok(lines.every((line) => (line[0]?.x ?? 0) === 50))
    // Thai words are not split, and no line begins with Chinese punctuation.
    if (words !== undefined)
      for (const line of lines) t.equal(textOf(line).replace(new RegExp(words.join('|'), 'g'), ''), '', textOf(line))
    t.ok(lines.every((line) => !textOf(line).startsWith('，')))
    for (const line of lines) {
      const end = Math.max(...line.map((chunk) => chunk.x))
      t.ok(end < 50 + width)
    }
  }
  const korean = '대한민국 서울특별시 강남구 테헤란로 '.repeat(5).trim()
  const { chunks } = await pageOf(korean, { width })
  t.equal(textOf(chunks).replaceAll(' ', ''), korean.replaceAll(' ', ''))
})

t.test('Lines may break after hyphens and at line feeds, not within numbers or before closing brackets', (t) => {
  const chunks = (text: string) => {
    let from = 0
    return lineBreaksOf(text).map(({ position }) => {
      const chunk = text.slice(from, position)
      from = position
      return chunk
    })
  }
  t.same(chunks('Nord-Licht (1,234.50 EUR)'), ['Nord-', 'Licht ', '(1,234.50 ', 'EUR)'])
  t.same(chunks('น้ำดื่ม (ไทย) 12'), ['น้ำ', 'ดื่ม ', '(ไทย) ', '12'])
  t.same(lineBreaksOf('a\nb'), [
    { position: 2, isRequired: true },
    { position: 3, isRequired: false },
  ])
  t.same(lineBreaksOf(''), [])
  t.same(chunks('a \u0316b c'), ['a \u0316b ', 'c'], 'a space with an accent is not split')
  t.end()
})

t.test('The bytes of a document do not depend on earlier documents', async (t) => {
  const text = 'a b ﬁ 주식회사 北京 क्षत्रिय ไทย שלום'
  const before = await pageOf(text)
  for (const other of ['a\u00a0b', '⼀⼆', 'क ष त र', 'น้ำ', ...Object.values(names).flat()]) await pageOf(other)
  t.ok(before.file.equals((await pageOf(text)).file))
})

t.test('Every text prints without an error or an empty box, and all visible text is extracted', async (t) => {
  const check = async (text: string) => {
    const { chunks } = await pageOf(text, { width: 90 })
    if (chunks.some(({ missing }) => missing > 0)) throw new Error(`an empty box in ${JSON.stringify(text)}`)
    const visible = (all: string) => all.replace(/[\s\p{Default_Ignorable_Code_Point}]/gu, '')
    if (visible(textOf(chunks)) !== visible(text)) throw new Error(`${JSON.stringify(text)} is not extracted`)
  }
  for (const text of naughty.map(String)) await check(text)
  await fc.assert(
    fc.asyncProperty(
      fc.oneof(
        fc.string({ unit: 'binary', maxLength: 40 }),
        fc.string({ unit: fc.constantFrom(...Array.from(Object.values(names).flat().join(''))), maxLength: 60 }),
      ),
      check,
    ),
    { seed, numRuns: 200 },
  )
  t.pass()
})
