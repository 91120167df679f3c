// Tests of the tables of benchmarks.
import { test } from 'tap'
import { table } from '#bench/figures.ts'

test('a table has the columns of which a figure has a value', async (t) => {
  t.equal(
    table({
      get_rps: { value: 1234.5, unit: '/s', floor: 2469, ratio: 0.5, target: '≥ 0.8' },
      rss: { value: 5, unit: 'MB' },
    }),
    [
      '| figure | value | floor | ratio | target |',
      '| --- | --- | --- | --- | --- |',
      '| `get_rps` | 1235 /s | 2469 /s | 0.50 | ≥ 0.8 |',
      '| `rss` | 5.00 MB |  |  |  |',
    ].join('\n'),
  )
})

test('a table names peers, and what a value consists of', async (t) => {
  t.equal(
    table({
      get_rps: { value: 100, unit: '/s', peer: 200, ratio: 0.5, noise: 12.34, peerParts: 'Peer 1.0' },
      get_cpu_us: { value: 30, unit: 'µs', peer: 10, ratio: 3, parts: 'gateway 10 + runtime 20' },
    }),
    [
      '| figure | value | ratio | peer | noise | target |',
      '| --- | --- | --- | --- | --- | --- |',
      '| `get_rps` | 100 /s | 0.50 | 200 /s (Peer 1.0) | 12.3 % |  |',
      '| `get_cpu_us` | 30.0 µs (gateway 10 + runtime 20) | 3.00 | 10.0 µs |  |  |',
    ].join('\n'),
  )
})
