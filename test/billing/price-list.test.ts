// The prices file is read to the last digit, and an error names the field that is wrong.
import { spawnSync } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { checkPlans, priceListFor, readBillingConfig } from '#control-plane/billing/billing-config.ts'
import { billingConfig, pricesFile } from './support/prices.ts'

const month = (text: string) => new Date(`${text}-01T00:00:00Z`)

/** Returns the prices file with one value replaced at a path. */
function changed(path: string, value: unknown): string {
  const file: unknown = structuredClone(pricesFile)
  const names = path.split('.')
  const last = names.pop() ?? ''
  let at: unknown = file
  for (const name of names) at = Reflect.get(Object(at), name)
  Reflect.set(Object(at), last, value)
  return JSON.stringify(file)
}

t.test('Prices, tiers and taxes are integers in millionths', async (t) => {
  const [first] = billingConfig.lists
  t.equal(first?.prices.tax.rate, 190_000n)
  t.same(first?.prices.plans.get('Pro')?.resources.get('requests'), {
    unit: 'million requests',
    included: 1_000_000n,
    tiers: [
      { upTo: 5_000_000n, price: 2_000_000n },
      { upTo: 20_500_000n, price: 1_250_000n },
      { upTo: undefined, price: 333_333n },
    ],
  })
})

t.test('A price list is valid from its month until the next list', async (t) => {
  t.equal(priceListFor(billingConfig, month('2025-12')), undefined)
  const fee = (text: string) => priceListFor(billingConfig, month(text))?.prices.plans.get('Pro')?.fee
  t.same(['2026-01', '2026-08', '2026-09', '2031-01'].map(fee), [25_000_000n, 25_000_000n, 27_500_000n, 27_500_000n])
})

t.test('An error names the wrong field with its path', async (t) => {
  const pro = 'price_lists.0.plans.Pro'
  const wrong: [string, unknown, RegExp][] = [
    ['currency', 'EURO', /^prices: currency is "EURO", but must be a code of ISO 4217/],
    ['currency', 'XQQ', /^prices: currency is "XQQ"/],
    ['seller.name', '', /seller\.name/],
    ['seller.lines', ['a\nb'], /seller\.lines\[0\] is "a\\nb"/],
    ['discount', '3', /^prices: discount is not a known field$/],
    ['number_prefix', 'A B', /number_prefix/],
    ['draft_days', 1.5, /draft_days/],
    ['price_lists', [], /price_lists/],
    ['price_lists.0.from', '2026-1', /price_lists\[0\]\.from/],
    ['price_lists.1.from', '2026-01', /price_lists\[1\]\.from is "2026-01", but must be later/],
    ['price_lists.0.tax.percent', '-19', /tax\.percent/],
    ['price_lists.0.tax.percent', '1.00001', /tax\.percent is "1.00001", but may have at most four decimal places/],
    [`${pro}.fee`, 25, /^prices: price_lists\[0\]\.plans\.Pro\.fee is 25, but must be string$/],
    [`${pro}.fee`, undefined, /^prices: price_lists\[0\]\.plans\.Pro\.fee is missing$/],
    [`${pro}.fee`, 'x'.repeat(200), /Pro\.fee is "x{98}…, but must be a decimal/],
    [`${pro}.free`, '1', /^prices: price_lists\[0\]\.plans\.Pro\.free is not a known field$/],
    [`${pro}.fee`, '25,00', /plans\.Pro\.fee is "25,00"/],
    [
      `${pro}.resources.cpu`,
      { unit: 'hour', tiers: [{ price: '1' }] },
      /^prices: price_lists\[0\]\.plans\.Pro\.resources\.cpu is not a known resource\. Allowed: requests/,
    ],
    [`${pro}.resources.requests.unit`, 'GB', /requests\.unit is "GB", but must be one of request, thousand requests/],
    [`${pro}.resources.requests.unit`, 'toString', /requests\.unit is "toString"/],
    [
      `${pro}.resources.requests.tiers`,
      [{ price: '1' }, { price: '2' }],
      /tiers\[0\]: every tier except the last must have "up_to"/,
    ],
    [
      `${pro}.resources.requests.tiers`,
      [{ up_to: '9', price: '1' }],
      /tiers\[0\]: every tier except the last must have "up_to"/,
    ],
    [
      `${pro}.resources.requests.tiers`,
      [{ up_to: '1', price: '1' }, { price: '2' }],
      /tiers\[0\]\.up_to is "1", but must be more/,
    ],
  ]
  for (const [path, value, message] of wrong) t.throws(() => readBillingConfig(changed(path, value)), message, path)
  t.throws(() => readBillingConfig('{'), /not valid JSON/)
})

t.test('Each price list must have prices for exactly the known plans', async (t) => {
  t.doesNotThrow(() => checkPlans(billingConfig, ['Free', 'Pro', 'Enterprise']))
  t.throws(
    () => checkPlans(billingConfig, ['Free', 'Pro', 'Enterprise', 'Team']),
    /price_lists\[0\]\.plans\.Team is missing/,
  )
  t.throws(
    () => checkPlans(billingConfig, ['Free', 'Pro']),
    /price_lists\[0\]\.plans\.Enterprise is not a known plan\. Allowed: Free, Pro/,
  )
})

t.test('The example in the documentation is a valid prices file', async (t) => {
  const page = await readFile(new URL('../../docs/invoices.md', import.meta.url), 'utf8')
  const example = readBillingConfig(/```json\n(\{.*?\n\})\n```/s.exec(page)?.[1] ?? '')
  t.doesNotThrow(() => checkPlans(example, ['Free', 'Pro', 'Enterprise']))
  t.equal(example.lists[0]?.prices.plans.get('Pro')?.minimum, 30_000_000n)
})

t.test('The example file is valid and equals the example in the documentation', async (t) => {
  const [example, page] = await Promise.all(
    ['examples/prices.json', 'docs/invoices.md'].map((path) =>
      readFile(new URL(`../../${path}`, import.meta.url), 'utf8'),
    ),
  )
  t.same(
    readBillingConfig(example ?? '').lists.map(({ prices }) => [...prices.plans.keys()]),
    [['Free', 'Pro', 'Enterprise']],
  )
  const shown = /```json\n(\{\n {2}"currency".*?)```/s.exec(page ?? '')?.[1]
  t.same(JSON.parse(shown ?? 'null'), JSON.parse(example ?? 'undefined'))
})

t.test('check-prices validates a file and names the wrong field', { timeout: 180_000 }, async (t) => {
  const directory = t.testdir({
    'wrong.json': changed('price_lists.0.plans.Pro.fee', 25),
    'text.json': '{\n]',
    'plans.json': changed('price_lists.0.plans.Team', { fee: '1' }),
  })
  const program = new URL('../../control-plane/src/billing/check-prices-main.ts', import.meta.url).pathname
  const run = (...files: string[]) => spawnSync(process.execPath, [program, ...files], { encoding: 'utf8' })
  const example = new URL('../../examples/prices.json', import.meta.url).pathname
  t.match(run(example), { status: 0, stdout: `${example}: 1 price list in EUR, no errors\n`, stderr: '' })
  const wrong: [string, RegExp][] = [
    ['wrong.json', /wrong\.json: price_lists\[0\]\.plans\.Pro\.fee is 25, but must be string\n$/],
    ['text.json', /text\.json: the file is not valid JSON: [^\n]*\n$/],
    [
      'plans.json',
      /plans\.json: price_lists\[0\]\.plans\.Team is not a known plan\. Allowed: Free, Pro, Enterprise\n$/,
    ],
    ['nothing.json', /no such file/],
  ]
  for (const [file, message] of wrong)
    t.match(run(join(directory, file)), { status: 1, stdout: '', stderr: message }, file)
  t.match(run(), { status: 1, stderr: /^usage: npm run check-prices -- FILE/ })
})
