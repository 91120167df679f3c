// Manual credits and charges. Each becomes a line of exactly one invoice, in any order of drafts, final and void invoices.
import t from 'tap'
import type { InvoiceBody } from '#control-plane/billing/invoice-body.ts'
import { readDecimalText } from '#control-plane/billing/money.ts'
import { chanceOf } from '#test/simulation/chance.ts'
import { isError } from '#test/support/control-plane/api.ts'
import { effort, seed } from '#test/support/effort.ts'
import { startBilledApi } from './support/billed-api.ts'

interface Adjustment {
  adjustment_id: string
  amount: string
  invoice: { invoice_id: string; number: string | null; month: string; state: string } | null
}

const api = await startBilledApi(t)
const monthAt = (nth: number) => new Date(Date.UTC(api.month.getUTCFullYear(), api.month.getUTCMonth() + nth, 1))
const nameOf = (nth: number) => monthAt(nth).toISOString().slice(0, 7)
const [first, second, third] = [
  await api.create(undefined, { plan: 'Pro', isolation: 'schema-per-tenant' }),
  await api.create(),
  await api.create(),
]
const months = 8

const pathOf = (id: string) => `/v1/tenants/${id}`
const postAdjustment = async (id: string, body: object, headers = {}) =>
  api.call('POST', `${pathOf(id)}/adjustments`, { body, headers, key: api.keys.billing })
const addAdjustment = async (id: string, amount: string, description = 'goodwill') =>
  (await postAdjustment(id, { description, amount })).body as Adjustment
const deleteAdjustment = async (id: string, adjustment: string) =>
  api.call('DELETE', `${pathOf(id)}/adjustments/${adjustment}`, { key: api.keys.billing })
const list = async (id: string) =>
  (
    (await api.call('GET', `${pathOf(id)}/adjustments?limit=1000`, { key: api.keys.read })).body as {
      adjustments: Adjustment[]
    }
  ).adjustments
const close = async (id: string, nth: number, final = true) =>
  (await api.call('POST', `${pathOf(id)}/invoices/close`, { body: { month: nameOf(nth), final } })).body as InvoiceBody
const makeVoid = async (id: string, invoice: string) =>
  api.call('POST', `${pathOf(id)}/invoices/${invoice}/void`, { body: { reason: 'a mistake' } })
const lineOf = (invoice: InvoiceBody, { adjustment_id: id }: Adjustment) =>
  invoice.lines.find((line) => line.adjustment_id === id)

t.test('An adjustment with an invalid amount, text or tenant is rejected and adds no row', async (t) => {
  for (const amount of [
    '0',
    '-0',
    '0.000000',
    '1.0000001',
    '1,5',
    '1e3',
    '+1',
    '--1',
    '-',
    '',
    ' 1',
    '01',
    '1000000000',
    'NaN',
  ]) {
    isError(
      t,
      await postAdjustment(first.tenant_id, { description: 'x', amount }),
      400,
      'INVALID_FIELD',
      'amount',
      amount,
    )
  }
  isError(
    t,
    await postAdjustment(first.tenant_id, { description: 'x', amount: 1 }),
    400,
    'INVALID_FIELD',
    'amount',
    'a number',
  )
  for (const description of ['', 'two\nlines', 'x'.repeat(201)])
    isError(
      t,
      await postAdjustment(first.tenant_id, { description, amount: '1' }),
      400,
      'INVALID_FIELD',
      'description',
      description,
    )
  isError(
    t,
    await postAdjustment(first.tenant_id, { amount: '1' }),
    400,
    'MISSING_FIELD',
    'description',
    'missing field',
  )
  isError(
    t,
    await postAdjustment(first.tenant_id, { description: 'x', amount: '1', tax: '7' }),
    400,
    'UNKNOWN_FIELD',
    'tax',
    'unknown field',
  )
  isError(
    t,
    await postAdjustment('t_00000000000000000000', { description: 'x', amount: '1' }),
    404,
    'TENANT_NOT_FOUND',
    'tenant',
    'tenant not found',
  )
  isError(
    t,
    await deleteAdjustment(first.tenant_id, '00000000-0000-4000-8000-000000000000'),
    404,
    'ADJUSTMENT_NOT_FOUND',
    'adjustment',
    'adjustment not found',
  )
  isError(
    t,
    await deleteAdjustment(first.tenant_id, 'x'),
    404,
    'ADJUSTMENT_NOT_FOUND',
    'adjustment',
    'adjustment not found',
  )
  isError(
    t,
    await api.call('GET', `${pathOf('t_00000000000000000000')}/adjustments`),
    404,
    'TENANT_NOT_FOUND',
    'tenant',
    'tenant not found',
  )
  t.same((await api.counts())['adjustments'], 0)
})

t.test('A repeated Idempotency-Key returns the first adjustment; a cursor continues a list', async (t) => {
  const headers = { 'idempotency-key': 'january' }
  const body = { description: 'moved from another host', amount: '120.5' }
  const made = await postAdjustment(second.tenant_id, body, headers)
  t.equal(made.status, 201)
  t.match(made.body, { description: body.description, amount: '120.500000', currency: 'EUR', invoice: null })
  const again = await postAdjustment(second.tenant_id, body, headers)
  t.same([again.status, again.body, again.headers['idempotency-replayed']], [201, made.body, 'true'])
  isError(
    t,
    await postAdjustment(second.tenant_id, { ...body, amount: '1' }, headers),
    409,
    'IDEMPOTENCY_MISMATCH',
    'Idempotency-Key',
    'another body',
  )
  await addAdjustment(second.tenant_id, '-0.000001')
  const page = (await api.call('GET', `${pathOf(second.tenant_id)}/adjustments?limit=1`)).body as {
    adjustments: Adjustment[]
    next_cursor: string
  }
  const rest = (await api.call('GET', `${pathOf(second.tenant_id)}/adjustments?limit=1&cursor=${page.next_cursor}`))
    .body as { adjustments: Adjustment[]; next_cursor: null }
  t.same(
    [...page.adjustments, ...rest.adjustments].map(({ amount }) => amount),
    ['120.500000', '-0.000001'],
  )
  t.same(rest.next_cursor, null)
  isError(
    t,
    await deleteAdjustment(first.tenant_id, page.adjustments[0]?.adjustment_id ?? ''),
    404,
    'ADJUSTMENT_NOT_FOUND',
    'adjustment',
    "another tenant's",
  )
})

t.test(
  'An adjustment is a taxed line of the next invoice in every format; a large credit makes the total negative',
  async (t) => {
    await api.closeUntil(new Date(monthAt(months).getTime() + 2 * 3_600_000))
    const credit = await addAdjustment(first.tenant_id, '-100.123457', '=goodwill, for the night of the 3rd')
    const invoice = await close(first.tenant_id, 0)
    const line = lineOf(invoice, credit)
    t.match(line, {
      charge: 'adjustment',
      month: nameOf(0),
      correction: false,
      amount: '-100.120000',
      exact_amount: '-100.123457',
      description: '=goodwill, for the night of the 3rd',
      quantity: null,
      plan: null,
    })
    t.equal(line?.tax_rate, invoice.lines[0]?.tax_rate)
    t.equal(
      readDecimalText(invoice.net),
      invoice.lines.reduce((sum, { amount }) => sum + readDecimalText(amount), 0n),
    )
    t.ok(readDecimalText(invoice.total) < 0n)
    t.match(invoice.payable, /^-\d+\.\d\d$/)
    t.match(invoice.basis.adjustments, [
      {
        adjustment_id: credit.adjustment_id,
        amount: '-100.123457',
        description: '=goodwill, for the night of the 3rd',
      },
    ])
    const csv = (await api.call('GET', `${pathOf(first.tenant_id)}/invoices/${nameOf(0)}.csv`)).text
    t.match(
      csv,
      new RegExp(
        `adjustment,${nameOf(0)},false,,.*,-100\\.120000,.*,` +
          `"'=goodwill, for the night of the 3rd",,${credit.adjustment_id},-100\\.123457,,`,
      ),
    )
    t.match((await list(first.tenant_id))[0], {
      invoice: { invoice_id: invoice.invoice_id, number: invoice.number, month: nameOf(0), state: 'final' },
    })
  },
)

t.test('An adjustment on a final invoice can be neither deleted nor changed', async (t) => {
  const [billed] = await list(first.tenant_id)
  isError(
    t,
    await deleteAdjustment(first.tenant_id, billed?.adjustment_id ?? ''),
    409,
    'ADJUSTMENT_BILLED',
    billed?.invoice?.number ?? '?',
    'billed',
  )
  for (const change of [
    'update adjustments set invoice_id = null',
    'delete from adjustments',
    'truncate adjustments',
  ]) {
    await t.rejects(api.sql(change), /does not change|adjustments are kept/, change)
  }
  await t.rejects(
    api.sql('update adjustments set amount_micro = 1 where invoice_id is null'),
    /what an adjustment says/,
  )
  t.same(
    (await list(first.tenant_id)).map(({ adjustment_id: id }) => id),
    [billed?.adjustment_id],
  )
})

t.test(
  'A renewed draft contains an adjustment unless it was deleted; no other invoice contains it meanwhile',
  async (t) => {
    const [stored, mistaken] = [await addAdjustment(first.tenant_id, '5'), await addAdjustment(first.tenant_id, '500')]
    const draft = await close(first.tenant_id, 1, false)
    t.ok(lineOf(draft, stored) !== undefined && lineOf(draft, mistaken) !== undefined)
    t.same(
      (await close(first.tenant_id, 2, false)).lines.filter(({ charge }) => charge === 'adjustment'),
      [],
    )
    t.equal((await deleteAdjustment(first.tenant_id, mistaken.adjustment_id)).status, 200)
    const more = await addAdjustment(first.tenant_id, '-1')
    const final = await close(first.tenant_id, 1)
    t.equal(final.invoice_id, draft.invoice_id)
    t.same(
      final.lines.flatMap(({ adjustment_id: id }) => id ?? []),
      [stored.adjustment_id, more.adjustment_id],
    )
    t.same(
      (await close(first.tenant_id, 2)).lines.filter(({ charge }) => charge === 'adjustment'),
      [],
    )
  },
)

t.test('A void invoice keeps the line and releases the adjustment for the next invoice', async (t) => {
  const before = (await api.call('GET', `${pathOf(first.tenant_id)}/invoices/${nameOf(0)}`)).body as InvoiceBody
  const [credit] = await list(first.tenant_id)
  if (credit === undefined) throw new Error('The tenant has no adjustment.')
  t.equal((await makeVoid(first.tenant_id, before.invoice_id)).status, 200)
  t.same((await list(first.tenant_id))[0]?.invoice, null)
  const next = await close(first.tenant_id, 3)
  t.equal(lineOf(next, credit)?.exact_amount, credit.amount)
  t.equal(lineOf(await close(first.tenant_id, 0), credit), undefined)
  const voided = (await api.call('GET', `${pathOf(first.tenant_id)}/invoices/${before.invoice_id}`)).body as InvoiceBody
  t.same([voided.state, voided.lines], ['void', before.lines])
})

t.test('An invoice composed before a new adjustment is not stored and gets no number', async (t) => {
  const { billing, invoices, ledger } = api.billing
  const last = async () => (await api.sql('select last from invoice_numbers'))[0]?.['last']
  const was = await last()
  const content = await billing.compose(first.tenant_id, monthAt(4))
  const late = await addAdjustment(first.tenant_id, '-2.5')
  t.equal(await api.record({ keyId: 'a test' }, (write) => invoices.save(content, true, write)), undefined)
  t.equal(await ledger.saveAll([content], true, await api.epoch()), 0)
  t.same([await last(), await invoices.ofMonth(first.tenant_id, monthAt(4))], [was, undefined])
  t.equal(lineOf(await close(first.tenant_id, 4), late)?.amount, '-2.500000')
})

t.test('At most 1000 adjustments of a tenant can wait for an invoice', async (t) => {
  await api.sql(
    `insert into adjustments (id, tenant_id, description, amount_micro, currency, created_at)
     select gen_random_uuid(), $1, 'one of many', 1000000, 'EUR', now() from generate_series(1, 998)`,
    [second.tenant_id],
  )
  isError(
    t,
    await postAdjustment(second.tenant_id, { description: 'x', amount: '1' }),
    409,
    'TOO_MANY_ADJUSTMENTS',
    '1000',
    'too many',
  )
  t.equal((await close(second.tenant_id, 0)).lines.filter(({ charge }) => charge === 'adjustment').length, 1000)
  t.equal((await postAdjustment(second.tenant_id, { description: 'x', amount: '1' })).status, 201)
})

t.test('The audit log records the creation and the deletion of an adjustment with its amount', async (t) => {
  const { adjustment_id: id } = await addAdjustment(third.tenant_id, '3.25', 'a second review')
  await deleteAdjustment(third.tenant_id, id)
  const { entries } = (await api.call('GET', '/v1/audit?limit=2')).body as { entries: object[] }
  t.match(
    entries,
    ['adjustment.delete', 'adjustment.create'].map((action) => ({
      action,
      target: third.tenant_id,
      detail: { adjustment_id: id, amount: '3.250000', currency: 'EUR', description: 'a second review' },
    })),
  )
})

t.test(
  'In any order of drafts, final and void invoices each adjustment is on one invoice at most, and in the end on one',
  async (t) => {
    const { tenant_id: id } = third
    const chance = chanceOf(seed)
    let expected = 0n
    const check = async (step: string) => {
      const present = await api.sql(
        `select l->>'adjustment_id' as id, i.id as invoice from invoices i, jsonb_array_elements(i.content->'lines') l
       where i.tenant_id = $1 and i.state <> 'void' and l->>'charge' = 'adjustment'`,
        [id],
      )
      const existing = new Set((await list(id)).map(({ adjustment_id: one }) => one))
      const billed = await api.sql(
        'select id, invoice_id as invoice from adjustments where tenant_id = $1 and invoice_id is not null',
        [id],
      )
      const sorted = (rows: Record<string, unknown>[]) =>
        rows.map((row) => `${String(row['id'])} ${String(row['invoice'])}`).sort()
      // A draft still shows adjustments that were deleted after it.
      t.same(sorted(present.filter((row) => existing.has(String(row['id'])))), sorted(billed), step)
    }
    t.comment(`seed ${seed}`)
    for (let step = 0; step < effort({ small: 40, full: 600 }); step++) {
      const kind = chance.pick(['add', 'add', 'delete', 'draft', 'draft', 'final', 'void'] as const)
      const nth = chance.below(months - 1)
      if (kind === 'add') {
        const amount = `${chance.happens(0.5) ? '-' : ''}${1 + chance.below(50)}.${1 + chance.below(9)}`
        expected += readDecimalText((await addAdjustment(id, amount)).amount)
      } else if (kind === 'delete') {
        const all = await list(id)
        const one = all.length === 0 ? undefined : chance.pick(all)
        if (one !== undefined && (await deleteAdjustment(id, one.adjustment_id)).status === 200)
          expected -= readDecimalText(one.amount)
      } else if (kind === 'void') {
        const one = await api.billing.invoices.ofMonth(id, monthAt(nth))
        if (one?.state === 'final') await makeVoid(id, one.id)
      } else await close(id, nth, kind === 'final')
      await check(`step ${step}: ${kind}`)
    }
    for (let nth = 0; nth < months; nth++) await close(id, nth)
    await check('the end')
    t.ok((await list(id)).every(({ invoice }) => invoice?.state === 'final'))
    const [sum] = await api.sql(
      `select coalesce(sum((l->>'amount')::numeric), 0)::numeric(30, 6)::text as sum
        from invoices i, jsonb_array_elements(i.content->'lines') l
     where i.tenant_id = $1 and i.state = 'final' and l->>'charge' = 'adjustment'`,
      [id],
    )
    t.equal(readDecimalText(String(sum?.['sum'])), expected)
  },
)
