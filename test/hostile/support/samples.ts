// What the probe reports, and what follows from it. Pure.

/** The kinds of requests that the probe sends. `event` is the time from a write to its event in an open stream. */
export type SampleKind = 'list' | 'download' | 'write' | 'event' | 'function' | 'control' | 'create'

/** One request of the probe. */
export interface Sample {
  kind: SampleKind
  /** Start of the request, in milliseconds since the epoch. */
  at: number
  milliseconds: number
  /** The error; undefined when the response was the expected one. */
  failure?: string
}

/** Private memory of each service's processes in bytes, by the service's name. */
export interface MemorySample {
  at: number
  memory: Record<string, number>
}

export type Report = Sample | MemorySample

/** Whether a sample belongs to the neighbour, not to the control plane. */
export function isNeighbours({ kind }: Sample): boolean {
  return kind !== 'control' && kind !== 'create'
}

/** Returns the smallest value that at least `share` of the values do not exceed, and 0 for no values. */
export function percentile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b)
  return sorted[Math.max(0, Math.ceil(sorted.length * share) - 1)] ?? 0
}

/** Returns the 99th percentile of the neighbour's latencies in milliseconds. */
export function neighboursP99(samples: readonly Sample[]): number {
  return percentile(
    samples.filter(isNeighbours).map(({ milliseconds }) => milliseconds),
    0.99,
  )
}

/** Describes the percentiles of each kind: the quickest way to see which part an attack delays. */
export function describeKinds(samples: readonly Sample[]): string {
  const times = (share: number, own: readonly Sample[]) =>
    percentile(
      own.map(({ milliseconds }) => milliseconds),
      share,
    ).toFixed(0)
  return [...Map.groupBy(samples, ({ kind }) => kind)]
    .map(([kind, own]) => `${kind} ${times(0.5, own)}, ${times(0.9, own)}, ${times(0.99, own)}`)
    .join('; ')
}

/** Returns the largest sum of each service. */
export function peaks(samples: readonly MemorySample[]): Record<string, number> {
  const highest: Record<string, number> = {}
  for (const { memory } of samples)
    for (const [service, bytes] of Object.entries(memory)) highest[service] = Math.max(highest[service] ?? 0, bytes)
  return highest
}
