// Positions where a line of text may end: by Unicode's rules (UAX #14), and by a dictionary for scripts without spaces.
import LineBreaker from 'linebreak'

export interface LineBreak {
  /** Index of the first UTF-16 code unit of the next line. */
  position: number
  isRequired: boolean
}

export const graphemes = new Intl.Segmenter('en', { granularity: 'grapheme' })

/**
 * Returns the line breaks in order; the last one is the end of the text. No break divides a grapheme, such as a space
 * with an accent.
 */
export function lineBreaksOf(text: string): LineBreak[] {
  const graphemeSegments = graphemes.segment(text)
  return unicodeBreaks(text).filter(
    ({ position }) => position === text.length || graphemeSegments.containing(position)?.index === position,
  )
}

function unicodeBreaks(text: string): LineBreak[] {
  const breaker = new LineBreaker(text)
  const breaks: LineBreak[] = []
  let from = 0
  for (let next = breaker.nextBreak(); next !== null; next = breaker.nextBreak()) {
    const chunk = text.slice(from, next.position)
    for (const index of dictionaryBreaks(chunk)) breaks.push({ position: from + index, isRequired: false })
    breaks.push({ position: next.position, isRequired: next.required })
    from = next.position
  }
  return breaks
}

// UAX #14 leaves scripts that write words without spaces between them to a dictionary. Node's ICU has one.
const unspaced = /[\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}]/u
const betweenWords = new RegExp(`${unspaced.source}$`, 'u')
const words = new Intl.Segmenter('th', { granularity: 'word' })

/** Returns the breaks between two letters of such scripts. Next to punctuation and digits UAX #14 decides. */
function dictionaryBreaks(chunk: string): number[] {
  if (!unspaced.test(chunk)) return []
  return [...words.segment(chunk)]
    .filter(
      ({ segment, index }) =>
        betweenWords.test(chunk.slice(0, index)) && unspaced.test(String.fromCodePoint(segment.codePointAt(0) ?? 0)),
    )
    .map(({ index }) => index)
}
