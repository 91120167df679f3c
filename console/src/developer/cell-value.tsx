// A value of a row as text. A long one is cut, because a table of them would be slow, and could not be read.

const maxCharacters = 500

/** Shows a value: a text, or null. */
export function CellValue({ value }: { value: string | boolean | null | undefined }) {
  if (value === null || value === undefined) return <span class="dim">null</span>
  if (value === '') return <span class="dim">empty text</span>
  const text = String(value)
  const more = text.length - maxCharacters
  return (
    <span class="cell-value">
      {more > 0 ? text.slice(0, maxCharacters) : text}
      {more > 0 && <span class="dim"> … and {more} more characters</span>}
    </span>
  )
}
