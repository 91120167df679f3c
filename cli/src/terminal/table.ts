// Tables for people. Texts of tenants are shown so that they cannot control the terminal.

/** The content of a cell of a table. */
export type Cell = string | number | boolean | null | undefined

/** A column of a table. */
export interface Column<Row> {
  readonly title: string
  readonly value: (row: Row) => Cell
}

const gap = '  '

/** Returns a table with a line for each row and a line of titles. Numbers are aligned to the right. */
export function formatTable<Row>(rows: readonly Row[], columns: readonly Column<Row>[]): string {
  const cells = rows.map((row) => columns.map(({ value }) => value(row)))
  const texts = [columns.map(({ title }) => title), ...cells.map((line) => line.map(cellText))]
  const widths = columns.map((_, at) => Math.max(...texts.map((line) => widthOf(line[at] ?? ''))))
  const isNumeric = columns.map((_, at) => cells.length > 0 && cells.every((line) => typeof line[at] === 'number'))
  return texts
    .map((line) =>
      line
        .map((text, at) => {
          const padding = ' '.repeat((widths[at] ?? 0) - widthOf(text))
          return isNumeric[at] === true ? padding + text : text + padding
        })
        .join(gap)
        .trimEnd(),
    )
    .join('\n')
}

/** Returns a table of two columns without titles: a member of the object in each line, nested ones with dots. */
export function formatMembers(body: object): string {
  const members = flatten(body, '')
  const width = Math.max(0, ...members.map(([name]) => name.length))
  return members.map(([name, text]) => `${name.padEnd(width)}${gap}${text}`.trimEnd()).join('\n')
}

/** Replaces control characters, so that a text cannot move the cursor or change colours. A tab stays if `keep` has it. */
export function printable(text: string, keep = ''): string {
  return text.replaceAll(/[\u0000-\u001f\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069]/g, (character) =>
    keep.includes(character) ? character : `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
}

function cellText(cell: Cell): string {
  return cell === null || cell === undefined || cell === '' ? '-' : printable(String(cell))
}

function flatten(value: unknown, name: string): [string, string][] {
  if (Array.isArray(value)) {
    if (value.every((item) => typeof item !== 'object'))
      return [[name, value.length === 0 ? '-' : value.map((item) => cellText(String(item))).join(', ')]]
    return value.flatMap((item, at) => flatten(item, `${name}[${at}]`))
  }
  if (typeof value === 'object' && value !== null) {
    const entries = Object.entries(value)
    if (entries.length === 0) return [[name, '-']]
    return entries.flatMap(([member, inner]) =>
      flatten(inner, name === '' ? printable(member) : `${name}.${printable(member)}`),
    )
  }
  return [[name, cellText(value as Cell)]]
}

/** Returns the number of columns that a text takes, with two for wide characters of East Asia. */
function widthOf(text: string): number {
  let width = 0
  for (const character of text.normalize('NFC'))
    width += /\p{Mark}/u.test(character)
      ? 0
      : /[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6]|\p{Emoji_Presentation}/u.test(
            character,
          )
        ? 2
        : 1
  return width
}
