// Measures several ways of doing the same thing in alternating rounds.
import { median, noise, type Figure, type Report } from '#bench/figures.ts'

/** Measures each way once for warming up, then in the given number of rounds. */
export async function inTurn<Way, Measured>(
  ways: Record<string, Way>,
  rounds: number,
  measure: (way: Way) => Promise<Measured>,
): Promise<Record<string, Measured[]>> {
  const measured: Record<string, Measured[]> = Object.fromEntries(Object.keys(ways).map((name) => [name, []]))
  for (let round = 0; round <= rounds; round++) {
    for (const [name, way] of Object.entries(ways)) {
      const value = await measure(way)
      if (round > 0) measured[name]?.push(value)
    }
  }
  return measured
}

export function alongside(
  measured: Record<string, number[]>,
  ours: string,
  bare: string,
  rest: Pick<Figure, 'unit' | 'target' | 'peer'>,
): Figure {
  const [value, floor] = [median(measured[ours] ?? []), median(measured[bare] ?? [])]
  return { value, floor, ratio: value / floor, ...rest }
}

export function reportRounds(report: Report, what: string, measured: Record<string, number[]>, digits = 0): void {
  for (const [name, values] of Object.entries(measured)) {
    report(
      `${what}, ${name}: ${values.map((value) => value.toFixed(digits)).join(', ')} (noise ${noise(values).toFixed(0)} %)`,
    )
  }
}
