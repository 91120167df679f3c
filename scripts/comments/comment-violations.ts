// Finds what keeps a doc comment from being whole sentences. Pure.

/** Words that begin a fragment: the rest of another sentence, or a clause without a main verb. */
const fragments = new Set(
  'and or but nor so than else also besides of what whose which who whom whoever whatever where wherever how why'.split(
    ' ',
  ),
)
/** Words that begin a fragment, or a phrase that a comma divides from its sentence: "When the lease ends, the gateway …". */
const beginnings = new Set(
  (
    'about above after against among around as at because before behind below between beyond by during ' +
    'for from if in inside into on outside over per since through to under unless until up upon when ' +
    'whenever while with within without'
  ).split(' '),
)
const abbreviations = /\b(?:e\.g|i\.e|vs|cf|approx)\./gi

/**
 * Returns what is wrong with a doc comment; nothing when its description is whole sentences. Tags, lists, tables, headings and
 * blocks of code are not judged.
 * @param comment with its marks
 */
export function commentViolations(comment: string): string[] {
  const description = descriptionOf(comment)
  if (description === '') return []
  const excerpt = excerptOf(comment)
  const beginning = /^[A-Za-z]+(?:'s)?/.exec(description)?.[0] ?? ''
  const violations: string[] = []
  if (/^[a-z]/.test(description)) violations.push(`A doc comment begins with a capital letter: "${excerpt}"`)
  if (isFragment(description, beginning.toLowerCase()))
    violations.push(`"${beginning}" begins a fragment; write a whole sentence: "${excerpt}"`)
  if (!/[.!?:]["')*_\]]*$/.test(description)) violations.push(`A doc comment ends with a full stop: "${excerpt}"`)
  return violations
}

function isFragment(description: string, beginning: string): boolean {
  if (/^(?:the same|as above|like the above)\b/i.test(description)) return true
  if (fragments.has(beginning)) return true
  if (!beginnings.has(beginning)) return false
  const [sentence = ''] = description.split(/[.;:!?](?:\s|$)/)
  return !/,\s+(?!and\b|or\b|but\b|nor\b|which\b|who\b|if\b|as\b)/.test(sentence)
}

/** The prose before the first tag, on one line; code and links have no punctuation. */
function descriptionOf(comment: string): string {
  const prose = withoutMarks(comment).replace(/(?:^|\s)@[a-z]+\b[^]*$/, '')
  return prose
    .replaceAll(/```[^]*?(?:```|$)/g, '')
    .replaceAll(/`[^`]*`/g, (code) => `\`${code.replaceAll(/[^\w$-]/g, '')}\``)
    .replaceAll(/\{@\w+[^}]*\}/g, 'Link')
    .replaceAll(/^\s*(?:[-*|#]|\d+\.).*$(?:\n {2,}\S.*$)*/gm, '')
    .replaceAll(abbreviations, (text) => text.replaceAll('.', ''))
    .replaceAll(/\s+/g, ' ')
    .trim()
}

function withoutMarks(comment: string): string {
  const lines = comment
    .replace(/^\/\*\*+/, '')
    .replace(/\*\/$/, '')
    .split('\n')
  return lines.map((line) => line.replace(/^[ \t]*\*?[ \t]?/, '')).join('\n')
}

function excerptOf(comment: string): string {
  const text = withoutMarks(comment).replaceAll(/\s+/g, ' ').trim()
  return text.length > 60 ? `${text.slice(0, 60)}…` : text
}
