// Reads CSV (RFC 4180): the first line has the names of the fields, each further line is a record. Pure.

/** The maximum number of characters of the JSON. Each record repeats the names, so a short CSV can become a long JSON. */
export const maxCharacters = 64 * 1024 * 1024
/** The number of characters for which memory is charged at a time. */
const stepCharacters = 64 * 1024

/**
 * Returns the records as JSON: an array of objects whose values are texts, or null for `NULL`.
 * @param charge called with the number of characters by which the JSON becomes longer than the text, before they are made
 * @throws SyntaxError that states what is wrong
 */
export function csvToJson(text: string, charge: (characters: number) => void = () => undefined): string {
  const lines = readLines(text)
  const names = lines.next().value?.map((name) => JSON.stringify(name))
  if (names === undefined) throw new SyntaxError('The CSV has no line with the names of the fields.')
  const records: string[] = []
  let characters = 0
  let charged = text.length
  for (const line of lines) {
    if (line.length !== names.length) throw new SyntaxError('All lines must have same number of fields')
    for (const [n, value] of line.entries()) characters += (names[n]?.length ?? 0) + value.length + membersSyntax
    if (characters > maxCharacters)
      throw new SyntaxError(`The records of the CSV have more than ${maxCharacters} characters, with their names.`)
    for (; charged < characters; charged += stepCharacters) charge(stepCharacters)
    const members = line.map((value, n) => `${names[n] ?? ''}:${value === 'NULL' ? 'null' : JSON.stringify(value)}`)
    records.push(`{${members.join(',')}}`)
  }
  return `[${records.join(',')}]`
}

/** The characters of a member in addition to its name and its value: quotes, a colon and a comma. */
const membersSyntax = 4

/** Reads one line after the other. Blank lines are skipped. */
function* readLines(text: string): Generator<string[], undefined> {
  let at = text.startsWith('\uFEFF') ? 1 : 0
  while (at < text.length) {
    const line: string[] = []
    for (;;) {
      let value = ''
      if (text[at] === '"') {
        for (at++; ; at++) {
          const end = text.indexOf('"', at)
          if (end < 0) throw new SyntaxError('A quoted value of the CSV does not end.')
          value += text.slice(at, end)
          at = end + 1
          if (text[at] !== '"') break
          value += '"'
        }
      } else {
        const begin = at
        while (at < text.length && !',\r\n'.includes(text[at] ?? '')) at++
        value = text.slice(begin, at)
      }
      line.push(value)
      if (text[at] === ',') at++
      else break
    }
    if (text[at] === '\r') at++
    if (text[at] === '\n') at++
    else if (at < text.length && text[at - 1] !== '\r')
      throw new SyntaxError('A quoted value of the CSV is followed by text.')
    if (line.length > 1 || line[0] !== '') yield line
  }
  return undefined
}
