// The options of `npm start`: the numbers of runtimes and gateways.
import t from 'tap'
import { parseOptions } from '#local/options.ts'

const parsed = (args: string[], cores: number) => parseOptions(args, { cwd: '/', cores })

t.test('The numbers of runtimes and gateways follow from the number of cores', async (t) => {
  const counts = (cores: number) => {
    const options = parsed([], cores)
    return [options?.runtimes, options?.gateways]
  }
  for (const [cores, runtimes, gateways] of [
    [1, 1, 1],
    [2, 2, 1],
    [3, 3, 1],
    [4, 4, 2],
    [6, 4, 2],
    [8, 4, 3],
    [16, 8, 6],
    [128, 8, 8],
  ] as const)
    t.same(counts(cores), [runtimes, gateways], `${cores} cores`)
})

t.test('An operator may choose both numbers, from 1 to 8', async (t) => {
  t.match(parsed(['--runtimes', '8', '--gateways', '1'], 1), { runtimes: 8, gateways: 1 })
  t.match(parsed(['--runtimes', '1', '--gateways', '8'], 1), { runtimes: 1, gateways: 8 })
  for (const option of ['--runtimes', '--gateways'])
    for (const value of ['0', '9', '1.5', 'two', ''])
      t.throws(() => parsed([option, value], 2), {
        message: `Invalid ${option} "${value}". Allowed: a whole number from 1 to 8.`,
      })
})
