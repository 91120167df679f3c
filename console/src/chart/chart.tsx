// A chart by day, and next to it a table with the same values, exactly as the API returns them.
import { useEffect, useRef, useState } from 'preact/hooks'
import { wholeNumber } from '../format/numbers.ts'
import { Card } from '../parts/basics.tsx'
import { Table } from '../parts/table.tsx'

interface ChartProps {
  title: string
  month: string
  /** The exact value of each day with usage, by its date. */
  values: ReadonlyMap<string, string>
}

/** Returns the dates of a month up to today. */
function datesOf(month: string): string[] {
  const [year = 0, number = 1] = month.split('-').map(Number)
  const count = new Date(Date.UTC(year, number, 0)).getUTCDate()
  const dates = Array.from({ length: count }, (_, day) => `${month}-${String(day + 1).padStart(2, '0')}`)
  const today = new Date().toISOString().slice(0, 10)
  return dates.filter((date) => date <= today)
}

/** Shows a month by day as bars and as a table. */
export function Chart({ title, month, values }: ChartProps) {
  const target = useRef<HTMLDivElement>(null)
  const [theme, setTheme] = useState(0)
  const dates = datesOf(month)
  const content = JSON.stringify([dates, [...values]])
  useEffect(() => {
    const observer = new MutationObserver(() => setTheme((before) => before + 1))
    observer.observe(document.documentElement, { attributeFilter: ['data-theme'] })
    const media = matchMedia('(prefers-color-scheme: dark)')
    const onChange = () => setTheme((before) => before + 1)
    media.addEventListener('change', onChange)
    return () => {
      observer.disconnect()
      media.removeEventListener('change', onChange)
    }
  }, [])
  useEffect(() => {
    let remove: (() => void) | undefined
    let isOver = false
    void import('./draw.ts').then(({ draw }) => {
      if (isOver || target.current === null) return
      remove = draw(target.current, {
        label: title,
        days: dates.map((date) => Date.parse(date) / 1000),
        // A day without usage has no bar.
        values: dates.map((date) => Number(values.get(date) ?? 0) || null),
      })
    })
    return () => {
      isOver = true
      remove?.()
    }
  }, [content, theme, title])
  const used = dates.filter((date) => (values.get(date) ?? '0') !== '0').reverse()
  return (
    <Card title={title}>
      <div class="chart-row">
        <div
          class="chart"
          ref={target}
          role="img"
          aria-label={`${title} by day in ${month}. The table has the values.`}
        />
        <Table
          label={`${title} by day`}
          rows={used}
          rowKey={(date) => date}
          columns={[
            { title: 'Day', cell: (date) => date },
            { title, isNumber: true, cell: (date) => wholeNumber(values.get(date) ?? '0') },
          ]}
        />
      </div>
    </Card>
  )
}
