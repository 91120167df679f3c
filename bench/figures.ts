// Figures of benchmarks: their values, floors and targets, and the table that shows them.

export interface Figure {
  value: number
  unit: string
  /** The result of the minimal program that does the same work, measured in the same run. */
  floor?: number
  /** Value divided by floor. */
  ratio?: number
  /**
   * The result of another service of this kind: measured in the same run if `peerParts` names the service; otherwise the
   * best one at another time on a machine of the same size.
   */
  peer?: number
  /** The parts of the value, for the table. */
  parts?: string
  /** The parts of the peer's value, or the name of the peer, for the table. */
  peerParts?: string
  /** Spread of the rounds in per cent: the greater one of the value's and the peer's. */
  noise?: number
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

/** Returns the figures as a Markdown table, without columns that would be empty. */
export function table(figures: Figures): string {
  const all = Object.entries(figures)
  const only = (key: keyof Figure, column: Column) =>
    all.some(([, figure]) => figure[key] !== undefined) ? [column] : []
  const columns: Column[] = [
    ['figure', (_, name) => `\`${name}\``],
    ['value', ({ value, unit, parts }) => shown(value, unit, parts)],
    ...only('floor', ['floor', ({ floor, unit }) => shown(floor, unit)]),
    ...only('ratio', ['ratio', ({ ratio }) => ratio?.toFixed(2) ?? '']),
    ...only('peer', ['peer', ({ peer, unit, peerParts }) => shown(peer, unit, peerParts)]),
    ...only('noise', ['noise', (figure) => shown(figure.noise, '%')]),
    ['target', ({ target }) => target ?? ''],
  ]
  const rows = all.map(([name, figure]) => columns.map(([, cell]) => cell(figure, name)))
  return [columns.map(([head]) => head), columns.map(() => '---'), ...rows]
    .map((cells) => `| ${cells.join(' | ')} |`)
    .join('\n')
}

/** A column's heading and the text of a figure in it. */
type Column = [string, (figure: Figure, name: string) => string]

function shown(value: number | undefined, unit: string, parts?: string): string {
  if (value === undefined) return ''
  return `${round(value)} ${unit}${parts === undefined ? '' : ` (${parts})`}`
}

function round(value: number): string {
  return value >= 100 ? value.toFixed(0) : value >= 10 ? value.toFixed(1) : value.toFixed(2)
}
