// The cost of a month, compared with figures computed by hand.
import t from 'tap'
import { correctionLines } from '#control-plane/billing/corrections.ts'
import { lineText, readLine } from '#control-plane/billing/line.ts'
import { decimalText, divideRounded, parseDecimal, payableText, readDecimalText } from '#control-plane/billing/money.ts'
import { rateMonth, type MonthToRate } from '#control-plane/billing/rating.ts'
import { totalsOf } from '#control-plane/billing/totals.ts'
import { amounts, firstList } from './support/prices.ts'

const month = new Date('2026-06-01T00:00:00Z')
const end = new Date('2026-07-01T00:00:00Z')
const at = (text: string) => new Date(`2026-06-${text}Z`)
const whole = (plan: string) => [{ plan, since: month, until: end }]
const rate = (rest: Partial<MonthToRate>) =>
  rateMonth({ month, prices: firstList(), periods: whole('Pro'), usage: [], step: 1n, ...rest })
const brief = (rest: Partial<MonthToRate>) =>
  rate(rest).map(({ charge, plan, resource, tier, quantity, amount }) => [
    charge,
    plan,
    resource,
    tier,
    quantity,
    decimalText(amount),
  ])

t.test('A month without usage costs the fee plus the rest of the minimum', async (t) => {
  t.same(brief({}), [
    ['fee', 'Pro', undefined, undefined, undefined, '25.000000'],
    ['minimum', 'Pro', undefined, undefined, undefined, '5.000000'],
  ])
  t.same(brief({ periods: whole('Free') }), [['fee', 'Free', undefined, undefined, undefined, '0.000000']])
  t.same(brief({ periods: [] }), [])
})

t.test('Included amounts come first, then each tier up to its exact bound', async (t) => {
  const requests = (count: bigint) =>
    brief({ usage: [{ hour: at('03T04:00:00'), amounts: amounts({ requests: count }) }] })
      .filter(([charge]) => charge === 'usage')
      .map((line) => line.slice(3))
  t.same(requests(1_000_000n), [[0, 1_000_000n, '0.000000']])
  t.same(requests(1_000_001n), [
    [0, 1_000_000n, '0.000000'],
    [1, 1n, '0.000002'],
  ])
  t.same(requests(5_000_000n), [
    [0, 1_000_000n, '0.000000'],
    [1, 4_000_000n, '8.000000'],
  ])
  t.same(requests(20_500_003n), [
    [0, 1_000_000n, '0.000000'],
    [1, 4_000_000n, '8.000000'],
    [2, 15_500_000n, '19.375000'],
    [3, 3n, '0.000001'],
  ])
})

t.test('A gigabyte stored all month is one GB-month, in a short month too', async (t) => {
  for (const [first, after, days] of [
    ['2026-02-01', '2026-03-01', 28n],
    ['2026-03-01', '2026-04-01', 31n],
  ] as const) {
    const seconds = days * 86_400n
    const [since, until] = [new Date(`${first}T00:00:00Z`), new Date(`${after}T00:00:00Z`)]
    const lines = rateMonth({
      month: since,
      prices: firstList(),
      step: 1n,
      periods: [{ plan: 'Pro', since, until }],
      usage: [{ hour: since, amounts: amounts({ documentByteSeconds: 3_000_000_000n * seconds }) }],
    })
    t.same(
      lines.filter(({ charge }) => charge === 'usage').map(({ quantity, amount }) => [quantity, decimalText(amount)]),
      [
        [1_000_000_000n * seconds, '0.000000'],
        [2_000_000_000n * seconds, '0.250000'],
      ],
    )
  }
})

t.test('A plan for part of a month costs its seconds and includes the same part of its amounts', async (t) => {
  // A quarter of June: 7.5 days.
  const change = at('08T12:00:00')
  const periods = [
    { plan: 'Free', since: month, until: change },
    { plan: 'Pro', since: change, until: end },
  ]
  t.same(
    brief({
      periods,
      usage: [
        { hour: at('02T00:00:00'), amounts: amounts({ requests: 3_000n }) },
        { hour: at('20T00:00:00'), amounts: amounts({ requests: 1_000_000n }) },
      ],
    }),
    [
      ['fee', 'Free', undefined, undefined, undefined, '0.000000'],
      ['usage', 'Free', 'requests', 0, 2_500n, '0.000000'],
      ['usage', 'Free', 'requests', 1, 500n, '0.250000'],
      ['fee', 'Pro', undefined, undefined, undefined, '18.750000'],
      ['usage', 'Pro', 'requests', 0, 750_000n, '0.000000'],
      ['usage', 'Pro', 'requests', 1, 250_000n, '0.500000'],
      ['minimum', 'Pro', undefined, undefined, undefined, '3.250000'],
    ],
  )
})

t.test('Each line is rounded once to cents, halves away from zero, and keeps its exact amount', async (t) => {
  const usage = [
    {
      hour: at('03T04:00:00'),
      amounts: amounts({
        requests: 1_002_500n,
        egressBytes: 10_055_555_556n,
        functionMemoryKibMilliseconds: 1024n * 1024n * 1000n * 100n,
      }),
    },
  ]
  const shown = rate({ usage, step: 10_000n }).map(({ charge, resource, tier, amount, exact }) => [
    charge,
    resource,
    tier,
    decimalText(amount),
    decimalText(exact),
  ])
  t.same(shown, [
    ['fee', undefined, undefined, '25.000000', '25.000000'],
    ['usage', 'requests', 0, '0.000000', '0.000000'],
    ['usage', 'requests', 1, '0.010000', '0.005000'],
    ['usage', 'egress', 0, '0.000000', '0.000000'],
    ['usage', 'egress', 1, '0.010000', '0.005000'],
    ['usage', 'function_memory', 1, '0.000000', '0.001700'],
    ['minimum', undefined, undefined, '4.980000', '4.988300'],
  ])
})

t.test('The fees in cents of a plan that a tenant left and chose again add up to the fee', async (t) => {
  const cuts = ['01T00:00:00', '03T01:00:00', '11T07:03:17', '17T00:00:01'].map(at)
  const periods = cuts.map((since, index) => ({ plan: 'Pro', since, until: cuts[index + 1] ?? end }))
  const fees = rate({ periods, step: 10_000n }).filter(({ charge }) => charge === 'fee')
  t.equal(
    fees.reduce((sum, { amount }) => sum + amount, 0n),
    25_000_000n,
  )
  t.ok(fees.every(({ amount }) => amount % 10_000n === 0n))
})

t.test('With weaker isolation than the plan’s, the fee and the minimum are those of that model, or zero', async (t) => {
  const half = at('16T00:00:00')
  const usage = [{ hour: at('03T04:00:00'), amounts: amounts({ requests: 1_500_000n }) }]
  const free = rate({
    periods: [{ plan: 'Enterprise', weakerIsolation: 'schema-per-tenant', since: month, until: end }],
  })
  t.same(
    free.map(({ charge, isolation, amount }) => [charge, isolation, amount]),
    [['fee', 'schema-per-tenant', 0n]],
  )
  const priced = rate({
    periods: [
      { plan: 'Pro', weakerIsolation: 'schema-per-tenant', since: month, until: half },
      { plan: 'Pro', since: half, until: end },
    ],
    usage,
  })
  t.same(
    priced.map(({ charge, isolation, amount }) => [charge, isolation, decimalText(amount)]),
    [
      ['fee', 'schema-per-tenant', '4.500000'],
      ['fee', undefined, '12.500000'],
      ['usage', undefined, '0.000000'],
      ['usage', undefined, '1.000000'],
      ['minimum', undefined, '2.250000'],
    ],
  )
})

t.test('The usage in the hour of a plan change is divided by seconds without a loss', async (t) => {
  const change = at('08T12:20:00')
  const periods = [
    { plan: 'Free', since: month, until: change },
    { plan: 'Pro', since: change, until: end },
  ]
  const lines = rate({ periods, usage: [{ hour: at('08T12:00:00'), amounts: amounts({ requests: 1_000n }) }] })
  t.same(
    lines.filter(({ charge }) => charge === 'usage').map(({ plan, quantity }) => [plan, quantity]),
    [
      ['Free', 333n],
      ['Pro', 667n],
    ],
  )
})

t.test('The exact fees of a plan that a tenant left and chose again add up to the fee', async (t) => {
  const cuts = ['01T00:00:00', '01T00:00:01', '11T07:03:17.999', '30T23:59:59'].map(at)
  const periods = cuts.map((since, index) => ({ plan: 'Pro', since, until: cuts[index + 1] ?? end }))
  const fees = rate({ periods }).filter(({ charge }) => charge === 'fee')
  t.equal(fees.length, 4)
  t.equal(
    fees.reduce((sum, { amount }) => sum + amount, 0n),
    25_000_000n,
  )
  t.same(fees[1]?.to, at('11T07:03:17'), 'an instant counts from the start of its second')
})

t.test('Usage after the last plan is charged to it; usage without any plan is shown and free', async (t) => {
  const usage = [{ hour: at('20T00:00:00'), amounts: amounts({ requests: 10n, egressBytes: 7n }) }]
  const gone = brief({ periods: [{ plan: 'Free', since: month, until: at('19T22:10:00') }], usage })
  t.same(
    gone.map(([charge, plan, resource, , quantity]) => [charge, plan, resource, quantity]),
    [
      ['fee', 'Free', undefined, undefined],
      ['usage', 'Free', 'requests', 10n],
      ['usage', 'Free', 'egress', 7n],
    ],
  )
  t.same(
    brief({ periods: [], usage }).map(([, plan, , tier, quantity, amount]) => [plan, tier, quantity, amount]),
    [
      [undefined, 0, 10n, '0.000000'],
      [undefined, 0, 7n, '0.000000'],
    ],
  )
})

t.test('Usage of another month, overlapping plans and plans without prices are rejected', async (t) => {
  t.throws(() => rate({ usage: [{ hour: end, amounts: amounts({}) }] }), /2026-07-01.* is not of 2026-06/)
  t.throws(
    () => rate({ periods: [...whole('Pro'), { plan: 'Free', since: at('08T00:00:00'), until: end }] }),
    /Pro and Free overlap/,
  )
  t.throws(() => rate({ periods: whole('Gold') }), /no prices for the plan Gold/)
})

t.test(
  'A correction is the difference between the new and the old lines, tier by tier, and empty without a change',
  async (t) => {
    const first = { hour: at('03T04:00:00'), amounts: amounts({ requests: 999_999n }) }
    const late = { hour: at('03T04:00:00'), amounts: amounts({ requests: 2n }) }
    const before = rate({ usage: [first] })
    t.same(correctionLines(rate({ usage: [first] }), before), [])
    const lines = correctionLines(rate({ usage: [first, late] }), before)
    t.same(
      lines.map(({ charge, correction, tier, quantity, amount }) => [charge, correction, tier, quantity, amount]),
      [
        ['usage', true, 0, 1n, 0n],
        ['usage', true, 1, 1n, 2n],
        ['minimum', true, undefined, undefined, -2n],
      ],
    )
    t.same(
      correctionLines(before, rate({ usage: [first, late] })).map(({ amount }) => amount),
      [0n, 2n, -2n],
    )
  },
)

t.test('Tax is rounded once for each rate, halves away from zero', async (t) => {
  const [line] = rate({})
  if (line === undefined) throw new Error('no line')
  const parts = [
    { ...line, amount: 1n },
    { ...line, amount: 1n },
    { ...line, amount: 11n, taxRate: 50_000n },
  ]
  t.same(totalsOf(parts, 1n), {
    net: 13n,
    taxes: [
      { rate: 50_000n, net: 11n, tax: 1n },
      { rate: 190_000n, net: 2n, tax: 0n },
    ],
    total: 14n,
  })
  const cents = [
    { ...line, amount: 1_230_000n },
    { ...line, amount: 20_000n },
  ]
  t.same(totalsOf(cents, 10_000n), {
    net: 1_250_000n,
    taxes: [{ rate: 190_000n, net: 1_250_000n, tax: 240_000n }],
    total: 1_490_000n,
  })
  t.equal(divideRounded(5n, 10n), 1n)
  t.equal(divideRounded(-5n, 10n), -1n)
  t.equal(divideRounded(4n, 10n), 0n)
})

t.test('Lines and amounts are equal after writing and reading', async (t) => {
  const lines = rate({
    usage: [{ hour: at('03T04:00:00'), amounts: amounts({ requests: 2_000_000n, egressBytes: 10n ** 24n }) }],
  })
  t.same(
    lines.map((line) => readLine(lineText(line, 2))),
    lines,
  )
  t.same(
    lines.map((line) => readLine(lineText(line, 6))),
    lines,
    'lines of an older invoice, from before rounding',
  )
  t.equal(decimalText(-1_500_000n), '-1.500000')
  t.equal(readDecimalText('-0.000001'), -1n)
  t.equal(parseDecimal('12.5'), 12_500_000n)
  for (const bad of ['', '-1', '1.', '.5', '01', '1e3', '1.0000001', ' 1', '1,5'])
    t.equal(parseDecimal(bad), undefined, bad)
  t.equal(payableText(12_345_000n, 2), '12.35')
  t.equal(payableText(-4_999n, 2), '0.00')
  t.equal(payableText(-5_000n, 2), '-0.01')
  t.equal(payableText(1_500_000n, 0), '2')
})
