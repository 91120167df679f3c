// Draws a bar chart by day with uPlot. This module is loaded only by screens with charts.
import uPlot from 'uplot'

/** The values of a chart: one for each day, by its start in seconds. */
export interface Series {
  days: number[]
  values: (number | null)[]
  label: string
  /** A quota as a line over the month; undefined for none. */
  limit?: number | undefined
}

const height = 180
const daySeconds = 86_400

/** Returns a colour of the current theme. A canvas cannot draw with `light-dark()`, which only a property resolves. */
function colour(element: HTMLElement, name: string): string {
  const { color } = element.style
  element.style.color = `var(${name})`
  const resolved = getComputedStyle(element).color
  element.style.color = color
  return resolved
}

/** Returns a short text for an axis. The exact values are in the table next to the chart. */
function axisText(value: number): string {
  const units: [number, string][] = [
    [1e12, 'T'],
    [1e9, 'G'],
    [1e6, 'M'],
    [1e3, 'k'],
  ]
  const unit = units.find(([size]) => Math.abs(value) >= size)
  return unit === undefined ? String(value) : `${Number((value / unit[0]).toPrecision(3))}${unit[1]}`
}

/** Draws into an element, and follows its width. @returns a function that removes the chart */
export function draw(target: HTMLElement, { days, values, label, limit }: Series): () => void {
  const bars = uPlot.paths.bars?.({ size: [0.7, 40] })
  const grid = { stroke: colour(target, '--line'), width: 1 }
  const axis = { stroke: colour(target, '--text-dim'), grid, ticks: grid, font: '12px system-ui, sans-serif' }
  const chart = new uPlot(
    {
      width: Math.max(target.clientWidth, 200),
      height,
      legend: { show: false },
      cursor: { show: false },
      scales: {
        x: { time: true, range: (_, min, max) => [min - daySeconds / 2, max + daySeconds / 2] },
        y: { range: (_, _min, max) => [0, Math.max(max, 1) * 1.08] },
      },
      tzDate: (seconds) => uPlot.tzDate(new Date(seconds * 1000), 'UTC'),
      axes: [
        { ...axis, values: (_, splits) => splits.map((at) => new Date(at * 1000).toISOString().slice(8, 10)) },
        { ...axis, size: 56, values: (_, splits) => splits.map(axisText) },
      ],
      series: [
        {},
        {
          label,
          stroke: colour(target, '--accent'),
          fill: colour(target, '--accent'),
          width: 1,
          points: { show: false },
          ...(bars === undefined ? {} : { paths: bars }),
        },
        ...(limit === undefined
          ? []
          : [{ label: 'Quota', stroke: colour(target, '--bad'), dash: [6, 4], width: 1.5, points: { show: false } }]),
      ],
    },
    [days, values, ...(limit === undefined ? [] : [days.map(() => limit)])],
    target,
  )
  const observer = new ResizeObserver(() => chart.setSize({ width: Math.max(target.clientWidth, 200), height }))
  observer.observe(target)
  return () => {
    observer.disconnect()
    chart.destroy()
  }
}
