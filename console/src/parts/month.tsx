// The choice of the month of figures.
import { useState } from 'preact/hooks'
import { lastMonths } from '../format/times.ts'

/** The chosen month as `YYYY-MM`, at first the current one, and the function that changes it. */
export function useMonth(): [month: string, setMonth: (month: string) => void] {
  return useState(() => lastMonths(1, new Date())[0] ?? '')
}

/** The content of a label with the last two years' months. */
export function MonthChoice({ month, onChoose }: { month: string; onChoose: (month: string) => void }) {
  return (
    <>
      <span>Month</span>
      <select value={month} onInput={(event) => onChoose(event.currentTarget.value)}>
        {lastMonths(24, new Date()).map((one) => (
          <option key={one} value={one}>
            {one}
          </option>
        ))}
      </select>
    </>
  )
}
