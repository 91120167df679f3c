// The filters of a list of rows.
import { useState } from 'preact/hooks'
import type { TableColumn } from './description.ts'
import { operators, type Filter } from './row-request.ts'

interface FiltersProps {
  columns: readonly TableColumn[]
  filters: readonly Filter[]
  onChange: (filters: readonly Filter[]) => void
}

/** Shows the filters, and a form that adds one. */
export function Filters({ columns, filters, onChange }: FiltersProps) {
  const [column, setColumn] = useState(columns[0]?.name ?? '')
  const [operator, setOperator] = useState('eq')
  const [value, setValue] = useState('')
  return (
    <>
      <form
        class="filters"
        aria-label="Filter"
        onSubmit={(event) => {
          event.preventDefault()
          onChange([...filters, [column, operator, value]])
          setValue('')
        }}
      >
        <label>
          <span>Column</span>
          <select value={column} onInput={(event) => setColumn(event.currentTarget.value)}>
            {columns.map(({ name }) => (
              <option key={name} value={name}>
                {name}
              </option>
            ))}
          </select>
        </label>
        <label>
          <span>Condition</span>
          <select value={operator} onInput={(event) => setOperator(event.currentTarget.value)}>
            {operators.map(([name, text]) => (
              <option key={name} value={name}>
                {text}
              </option>
            ))}
          </select>
        </label>
        <label>
          <span>Value</span>
          <input
            type="text"
            value={value}
            autocomplete="off"
            spellcheck={false}
            onInput={(event) => setValue(event.currentTarget.value)}
          />
        </label>
        <button type="submit" class="button">
          Add the filter
        </button>
      </form>
      {filters.length > 0 && (
        <ul class="filter-list" aria-label="Filters">
          {filters.map((filter, nth) => (
            <li key={filter.join(' ')}>
              <code>{`${filter[0]} ${filter[1]} ${filter[2]}`}</code>{' '}
              <button
                type="button"
                class="button small quiet"
                aria-label={`Remove the filter ${filter.join(' ')}`}
                onClick={() => onChange(filters.filter((_, at) => at !== nth))}
              >
                ✕
              </button>
            </li>
          ))}
        </ul>
      )}
    </>
  )
}
