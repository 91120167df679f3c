// Figures of benchmarks: their values, floors and targets, and the table that shows them.

export interface Figure {
  value: number
  unit: string
  /** The result of the minimal program that does the same work, measured in the same run. */
  floor?: number
  /** Value divided by floor. */
  ratio?: number
  /** The best result of another service of this kind, measured at another time on a machine of the same size. */
  peer?: number
  /** The goal in words, for the table. */
  target?: string
}

export type Figures = Record<string, Figure>

/** Receives progress, one line per call. */
export type Report = (line: string) => void

export function quantile(values: readonly number[], q: number): number {
  const sorted = [...values].sort((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.floor(q * sorted.length))] ?? Number.NaN
}

export function median(values: readonly number[]): number {
  return quantile(values, 0.5)
}

/** Spread of repeated measurements of the same thing: (max - min) / median, in per cent. */
export function noise(values: readonly number[]): number {
  return (100 * (Math.max(...values) - Math.min(...values))) / median(values)
}

export function table(figures: Figures): string {
  const peers = Object.values(figures).some(({ peer }) => peer !== undefined)
  const rows = Object.entries(figures).map(([name, figure]) => [
    `\`${name}\``,
    `${round(figure.value)} ${figure.unit}`,
    figure.floor === undefined ? '' : `${round(figure.floor)} ${figure.unit}`,
    figure.ratio === undefined ? '' : figure.ratio.toFixed(2),
    ...(peers ? [figure.peer === undefined ? '' : `${round(figure.peer)} ${figure.unit}`] : []),
    figure.target ?? '',
  ])
  const head = ['figure', 'value', 'floor', 'ratio', ...(peers ? ['peer'] : []), 'target']
  return [head, head.map(() => '---'), ...rows].map((cells) => `| ${cells.join(' | ')} |`).join('\n')
}

function round(value: number): string {
  return value >= 100 ? value.toFixed(0) : value >= 10 ? value.toFixed(1) : value.toFixed(2)
}
